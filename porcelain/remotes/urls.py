"""From the place of another store to a transport to it.

======================  ==========================================================
a path, ``file://``     a store on this machine or a mounted disk
``ssh://host/path``     through the user's own ssh
``https://``, http      ``objstore serve``
``git+ssh://`` ...      a branch of a Git repository, also ``git+https://``, ``git+file://``
``s3://bucket/prefix``  object storage, also ``gs://``, ``az://``
a file ``.objpack``     a bundle
======================  ==========================================================
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import unquote

from objstore.errors import NotFound, UsageError
from objstore.sync.transport import Transport
from plumbing.interface.options import Context
from plumbing.interface.packing import served_folder
from plumbing.interface.settings import keeps_content
from porcelain.remotes.config import Pusher, Remote

#: Where the opener of a kind of URL is: ``module:function``, called with the remote, the context and, where it is to be
#: written to, who writes.
OPENERS: dict[str, str] = {
    "bundle": "porcelain.remotes.urls:open_bundle",
    "path": "porcelain.remotes.urls:open_path",
    "ssh": "porcelain.remotes.ssh:open_ssh",
    "http": "porcelain.remotes.http_client:open_http",
    "https": "porcelain.remotes.http_client:open_http",
    "git+ssh": "porcelain.remotes.git_branch:open_git",
    "git+https": "porcelain.remotes.git_branch:open_git",
    "git+http": "porcelain.remotes.git_branch:open_git",
    "git+file": "porcelain.remotes.git_branch:open_git",
    "git+git": "porcelain.remotes.git_branch:open_git",
    "s3": "porcelain.remotes.s3_bucket:open_s3",
    "gs": "porcelain.remotes.s3_bucket:open_s3",
    "az": "porcelain.remotes.s3_bucket:open_s3",
}
#: What reads the parts of a URL, and refuses one that is none.
_PARSERS: dict[str, str] = {
    "ssh": "porcelain.remotes.ssh:parse_ssh",
    "http": "porcelain.remotes.http_client:parse_http",
    "git": "porcelain.remotes.git_branch:parse_git",
    "s3": "porcelain.remotes.s3_bucket:parse_bucket",
}
_PARSED_AS = {"https": "http", "gs": "s3", "az": "s3"} | {k: "git" for k in OPENERS if k.startswith("git+")}
#: What sees that a place is fit to be a remote; called with the remote and the context.
_PROBES = dict.fromkeys(("s3", "gs", "az"), "porcelain.remotes.s3_bucket:probe")
BUNDLE = ".objpack"
#: Bytes on disk from which on a process of its own pays for its start.
_LARGE_BYTES = 16 * 1024 * 1024
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

Opener = Callable[[Remote, Context, Pusher | None], AbstractContextManager[Transport]]


class Url(NamedTuple):
    """The kind of a URL (a key of ``OPENERS``), and what stands behind it: a path, or the URL as it is."""

    kind: str
    place: str


def parse_url(text: str) -> Url:
    """What ``text`` says; raises ``UsageError`` for a scheme that is not known, or a path that looks like an option."""
    found = _SCHEME.match(text)
    if found is None or found[1].lower() == "file":
        path = text if found is None else _file_path(text)
        if not path or path.startswith("-"):
            raise UsageError(f"{text!r}: not the place of a store")
        return Url("bundle" if path.endswith(BUNDLE) else "path", path)
    scheme = found[1].lower()
    if scheme not in OPENERS or scheme in ("bundle", "path"):
        known = [name for name in OPENERS if name not in ("bundle", "path")]
        raise UsageError(
            f"{scheme}: no such kind of remote",
            hint="a path, file:// or " + " ".join(f"{k}://" for k in known),
        )
    return Url(scheme, text)


def _file_path(text: str) -> str:
    rest = text[len("file://") :]
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost"):
        raise UsageError(f"{text!r}: a file on another machine", hint="use ssh://, or a mounted path")
    return unquote(slash + path)


def is_hub(url: str) -> bool:
    """Whether packs are kept at ``url`` as plain files."""
    return _PARSED_AS.get(kind := parse_url(url).kind, kind) in ("git", "s3")


def check_remote(remote: Remote, context: Context) -> None:
    """Raise ``UsageError`` unless all parts of the URL are well formed, and the place, where that can be found out, is
    fit to be a remote; ``StorageError`` where it could not be asked."""
    kind = parse_url(remote.url).kind
    parser = _PARSERS.get(_PARSED_AS.get(kind, kind))
    if parser is not None:
        _load(parser)(remote.url)
    if kind in _PROBES:
        _load(_PROBES[kind])(remote, context)


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def absolute(text: str, cwd: str) -> str:
    """``text`` so that it means the same wherever the program is run."""
    url = parse_url(text)
    return os.path.normpath(os.path.join(cwd, url.place)) if url.kind in ("path", "bundle") else text


@contextmanager
def open_transport(remote: Remote, context: Context, pusher: Pusher | None = None) -> Iterator[Transport]:
    """A transport to ``remote``, closed at the end; to be written to only by ``pusher``."""
    opener: Opener = _load(OPENERS[parse_url(remote.url).kind])
    with opener(remote, context, pusher) as transport:
        try:
            yield transport
        finally:
            transport.close()


@contextmanager
def open_path(remote: Remote, context: Context, pusher: Pusher | None) -> Iterator[Transport]:
    """A store on this machine. A large one is read by a process of its own, so that packing and checking go on side by
    side."""
    folder = served_folder(parse_url(remote.url).place, context.cwd)
    if pusher is None and _is_large(folder):
        start = f"import sys; sys.path[:] = {sys.path!r}; from porcelain.main import main; sys.exit(main())"
        from porcelain.remotes.ssh import run_service

        with run_service([sys.executable, "-c", start, "upload-pack", "--", folder], context) as service:
            yield service
        return
    from objstore.store import Store
    from objstore.sync.stores import StoreTransport

    if not os.path.exists(os.path.join(folder, "data.mdb")):
        raise NotFound(f"{folder}: no store here", hint=f"make one with: objstore init {shlex.quote(folder)}")
    with Store.open(folder, read_only=pusher is None, lock_timeout=context.lock_timeout) as store:
        with store.snapshot() as view:
            content = keeps_content(view)
        yield StoreTransport(store, keeps_content=content)


def _is_large(folder: str) -> bool:
    try:
        status = os.stat(os.path.join(folder, "data.mdb"))
    except OSError:
        return False
    return getattr(status, "st_blocks", 0) * 512 >= _LARGE_BYTES


@contextmanager
def open_bundle(remote: Remote, context: Context, pusher: Pusher | None) -> Iterator[Transport]:
    """A bundle."""
    from objstore.sync.bundles import BundleTransport

    yield BundleTransport(os.path.join(context.cwd, parse_url(remote.url).place))


def shown(url: str) -> str:
    """``url`` without what lets its holder in."""
    scheme, separator, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return scheme + separator + place.rpartition("@")[2] + slash + path if separator else url
