"""Asking a version control program something, without a shell, a terminal or an end that is never reached."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

_SECONDS = 120


class Refused(Exception):
    """A program would not say; the text is one line without anything of the repository's content."""


def answer(
    command: Sequence[str],
    settings: Mapping[str, str],
    *,
    fine: tuple[int, ...] = (0,),
    reasons: Mapping[bytes, str] | None = None,
) -> str:
    """All that ``command`` prints, without the end of the last line. No variable of git or jj reaches it but those in
    ``settings``; it has done well when its exit code is one of ``fine``, and ``reasons`` has words for what it may say
    when it has not. Raises ``Refused``."""
    name = os.path.basename(command[0])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "JJ_"))}
    try:
        done = subprocess.run(
            command,
            env={**kept, **settings, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise Refused(f"the {name} program is not there") from None
    except (OSError, subprocess.TimeoutExpired):
        raise Refused(f"{name} does not answer") from None
    if done.returncode not in fine:
        known = (words for said, words in (reasons or {}).items() if said in done.stderr)
        raise Refused(next(known, f"{name} refuses it"))
    return done.stdout.decode("utf-8", "replace").removesuffix("\n")
