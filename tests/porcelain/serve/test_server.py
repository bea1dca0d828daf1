"""The socket that answers go out by."""

from __future__ import annotations

import socket

import pytest

from porcelain.serve.server import listen


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_body_of_an_answer_does_not_wait_until_its_head_has_been_acknowledged(host: str) -> None:
    with listen(host, 0) as where, socket.create_connection(where.getsockname()[:2]):
        accepted, _ = where.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
