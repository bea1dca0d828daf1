"""The settings of a store: which there are, and what they are set to. They belong to this machine."""

from __future__ import annotations

from objstore.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from objstore.snapshot import Snapshot


def _switch(value: str) -> str:
    if value not in ("on", "off"):
        raise UsageError(f"config: {value[:40]!r}: neither on nor off")
    return value


def _line(value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > 200:
        raise UsageError("config: the value must be one line of up to 200 printable characters")
    return value


#: Every setting: how a value of it is checked, and its value where none is set.
SETTINGS: dict[str, tuple[Callable[[str], str], str | None]] = {
    "content.keep": (_switch, "off"),
    "host.label": (_line, None),
    "user.name": (_line, None),
}


def setting(view: Snapshot, name: str) -> str | None:
    """The value of a setting in a store: what was set, else its default, else None."""
    found = view.local(key_of(name))
    return found.decode() if found is not None else SETTINGS[name][1]


def keeps_content(view: Snapshot) -> bool:
    """Whether the store's owner has turned content keeping on."""
    return setting(view, "content.keep") == "on"


def key_of(name: str) -> bytes:
    """Where a setting is kept among the local values of a store."""
    return b"config/" + name.encode()
