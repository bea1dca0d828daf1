"""A large file with a very long line: landed in bounded memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import HOME, TIDEPOOL, held, patched, run, succeed, verify

MEGABYTE = 1024 * 1024
#: Prints by how many bytes the anonymous memory of the process grew at most while it imported.
GROWTH = (
    "import threading, time, porcelain.importing.run as importing",
    "def anonymous():",
    "    with open('/proc/self/status') as status:",
    "        return next(int(line.split()[1]) * 1024 for line in status if line.startswith('RssAnon'))",
    "def watch():",
    "    while True:",
    "        seen.append(anonymous())",
    "        time.sleep(0.002)",
    "run_import = importing.run_import",
    "def measured(*arguments, **options):",
    "    global seen",
    "    seen = [anonymous()]",
    "    threading.Thread(target=watch, daemon=True).start()",
    "    result = run_import(*arguments, **options)",
    "    print(max(seen) - seen[0], len(seen), file=sys.stderr)",
    "    return result",
    "import porcelain.importing.command as command",
    "command.run_import = measured",
)


def large_file(path: Path) -> int:
    """60 MB: lines of a sample with long output, new ids each time, and one line of 13 MB; how many records."""
    lines = [line for line in (HOME / TIDEPOOL).read_bytes().splitlines() if b'"uuid":"' in line]
    written, count = 0, 0
    with path.open("wb") as file:
        while written < 60 * MEGABYTE:
            for number, line in enumerate(lines):
                line = line.replace(b'"uuid":"', b'"uuid":"%06x-' % count)
                if number % 4 == 1:
                    value = json.loads(line)
                    value["toolUseResult"] = {"stdout": f"{count} " + "x y z " * 12_000}
                    if 30 * MEGABYTE < written < 30 * MEGABYTE + 80_000:
                        value["toolUseResult"]["stdout"] *= 180
                    line = json.dumps(value).encode()
                written += file.write(line + b"\n")
                count += 1
    return count


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured by /proc")
def test_sixty_megabytes_with_a_line_of_thirteen(tmp_path: Path) -> None:
    project = tmp_path / "home" / ".claude" / "projects" / "-large"
    project.mkdir(parents=True)
    path = project / TIDEPOOL.name
    count = large_file(path)
    assert max(map(len, path.read_bytes().split(b"\n"))) > 12 * MEGABYTE
    store = tmp_path / "store"
    succeed(store, "init")
    script = patched(tmp_path / "measured.py", *GROWTH)
    result = run(store, "import", "--json", "--processes", "1", home=tmp_path / "home", script=script)
    assert result.code == 0, result.err
    assert result.json["records"] == count
    grown, samples = map(int, result.err.split())
    assert samples > 20
    assert 13 * MEGABYTE < grown < 300 * MEGABYTE
    assert len(held(store).landed["claude", TIDEPOOL.stem]) == count
    verify(store)
