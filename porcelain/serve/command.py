"""``objstore serve``: serve the store over HTTP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from objstore.errors import Conflict, StorageError, UsageError
from objstore.store import Store
from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import Writer, say
from plumbing.interface.settings import setting
from plumbing.interface.stores import open_store
from porcelain.serve.tokens import Scope, all_tokens, new_token

SUMMARY = "serve the store over HTTP"
USAGE = """serve [--port N] [--write] [--token-file FILE]
           serve --listen ADDRESS (--certificate FILE --key FILE | --behind-proxy) [--name HOST]..."""
OPTIONS = (
    Option("--port", "port", "N", "the port (8411; 0: any that is free)", "integer", default=8411),
    Option("--write", "write", help="take in what other stores push"),
    Option(
        "--token-file",
        "token_file",
        "FILE",
        "write the token to FILE instead of printing it; FILE is removed at the end",
        "file",
    ),
    Option("--listen", "listen", "ADDRESS", "be reached at ADDRESS, beyond this machine too", "text"),
    Option("--certificate", "certificate", "FILE", "the TLS certificate, with its chain (PEM)", "file"),
    Option("--key", "key", "FILE", "the private key of the certificate (PEM)", "file"),
    Option("--behind-proxy", "behind_proxy", help="a proxy in front does TLS"),
    Option("--name", "names", "HOST", "answer under the name HOST too", "text", default=[], many=True),
    Option("--max-pack", "max_pack", "BYTES", "longest pack that is taken (4 GiB)", "integer"),
    Option("--requests", "requests", "N", "requests at once (128)", "integer"),
    Option(
        "--timeout", "timeout", "SECONDS", "wait this long for a slow client (30)", "seconds", default=30.0
    ),
)
EXAMPLES = (
    "objstore serve",
    "objstore serve --write --token-file ~/.objstore-token",
    "objstore serve --listen 0.0.0.0 --name store.example.org --certificate cert.pem --key key.pem",
)
ARGUMENTS = (0, 0)
_LOOPBACK = "127.0.0.1"


def run(arguments: Arguments, context: Context) -> int:
    """Serve until interrupted; what was begun is finished first."""
    try:
        import starlette
        import uvicorn
    except ImportError:
        raise UsageError(
            "serve: needs starlette and uvicorn", hint="pip install 'objstore-cli[serve]'"
        ) from None
    del starlette, uvicorn
    from porcelain.serve.server import is_loopback

    host = arguments.listen or _LOOPBACK
    local = is_loopback(host)
    _check(arguments, local)
    with open_store(context, write=True) as store:
        with store.snapshot() as view:
            store.who = setting(view, "user.name") or store.who
            known = any(True for _ in all_tokens(view))
        if not local and not known:
            raise UsageError(
                "serve: there is no token to be let in with", hint="objstore serve tokens --add read"
            )
        _serve(store, host, arguments, context, print_token=local)
    return 0


def _check(arguments: Arguments, local: bool) -> None:
    if (arguments.certificate is None) != (arguments.key is None):
        raise UsageError("serve: --certificate and --key go together", hint="objstore serve --help")
    if arguments.port > 65535:
        raise UsageError(f"serve: --port: {arguments.port} is no port")
    if not local and arguments.certificate is None and not arguments.behind_proxy:
        raise UsageError(
            f"serve: {arguments.listen} is reached from other machines, and tokens would pass in clear",
            hint="give --certificate FILE --key FILE, or --behind-proxy where a proxy does TLS",
        )


def _serve(store: Store, host: str, arguments: Arguments, context: Context, *, print_token: bool) -> None:
    from porcelain.serve.app import make_app
    from porcelain.serve.guard import Limits
    from porcelain.serve.server import listen, make_server

    scope: Scope = "write" if arguments.write else "read"
    identity, text, token = new_token(scope, "this run", store.now())
    usual = Limits()
    limits = Limits(
        pack=arguments.max_pack or usual.pack,
        requests=arguments.requests or usual.requests,
        seconds=arguments.timeout or usual.seconds,
    )

    def log(line: str) -> None:
        if not context.quiet:
            with suppress(OSError, ValueError):
                context.stderr.write(line.encode() + b"\n")
                context.stderr.flush()

    app = make_app(
        store,
        hosts=_hosts(host, arguments),
        tokens={identity: token} if print_token else {},
        writable=arguments.write,
        limits=limits,
        log=log,
    )
    server = make_server(app, seconds=limits.seconds, certificate=arguments.certificate, key=arguments.key)
    with (
        listen(host, arguments.port) as where,
        _told(arguments, context, text if print_token else "") as shown,
    ):
        scheme = "https" if arguments.certificate else "http"
        address, port = where.getsockname()[:2]
        name = f"[{address}]" if ":" in address else address
        with Writer(context.stdout) as out:
            out.line(f"{scheme}://{shown}{name}:{port}/")
        context.stdout.flush()
        if not arguments.write:
            say(context, "nothing is taken in; to have other stores push here: --write")
        server.serve_on(where)


def _hosts(host: str, arguments: Arguments) -> frozenset[str]:
    """The names that a request may be meant for."""
    names = {f"[{host}]" if ":" in host else host, *arguments.names}
    if arguments.listen is None or host in ("localhost", "::1", _LOOPBACK):
        names |= {"localhost", _LOOPBACK, "[::1]"}
    return frozenset(name.lower() for name in names)


@contextmanager
def _told(arguments: Arguments, context: Context, text: str) -> Iterator[str]:
    """Tell the token: what stands before the host in the URL that is printed, or a file that nobody else can read."""
    if not text or arguments.token_file is None:
        yield f"token:{text}@" if text else ""
        return
    path = os.path.join(context.cwd, arguments.token_file)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except FileExistsError:
        raise Conflict(f"{path}: is there already", hint="name another, or remove it") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text + "\n")
        yield ""
    finally:
        with suppress(OSError):
            os.unlink(path)
