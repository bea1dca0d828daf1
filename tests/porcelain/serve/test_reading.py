"""The read API, and that it answers as its description says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore.store import Store
from porcelain.session.exchange.refresh import Mirror, decode_delta, decode_fetched
from porcelain.session.tree.store import new_session
from tests.objstore.sync.building import TIME, add_round, ask, opened
from tests.porcelain.serve.serving import Served, served

REF = "flow/1111111111111111/test/x"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "s") as made:
        add_round(made, REF, "a")
        yield made


@pytest.fixture
def server(store: Store) -> Iterator[Served]:
    with served(store) as running:
        yield running


def _get(server: Served, path: str) -> object:
    status, _, body = server.ask("GET", path, token=server.reader)
    assert status == 200, body
    return json.loads(body)


def test_objects_are_their_canonical_bytes(server: Served, store: Store) -> None:
    for name, key in store.refs().items():
        status, headers, body = server.ask("GET", f"/objects/{key}")
        assert (status, body) == (200, store.get_bytes(name))
        assert headers["etag"] == f'"{key}"' and headers["objstore-kind"]
    assert server.ask("GET", "/objects/" + "0" * 64)[0] == 404
    for text in ("0" * 63, "g" * 64, "A" * 64):
        assert server.ask("GET", f"/objects/{text}")[0] == 400


def test_refs_come_in_pages(server: Served, store: Store) -> None:
    for number in range(7):
        add_round(store, f"flow/1111111111111111/test/p{number}", "a")
    found: list[dict[str, str]] = []
    after = ""
    while True:
        page = _get(server, f"/refs?limit=3&prefix=flow/&after={after}")
        assert isinstance(page, dict)
        found += page["refs"]
        if page["next"] is None:
            break
        after = page["next"]
    assert {one["name"]: one["id"] for one in found} == store.refs("flow/")
    assert _get(server, f"/refs/{REF}") == {"id": store.ref(REF), "name": REF}
    assert server.ask("GET", "/refs/tag/none")[0] == 404
    for query in ("limit=0", "limit=1001", "limit=x", "limit=1&limit=2", "other=1"):
        assert server.ask("GET", f"/refs?{query}")[0] == 400


def test_a_page_follows_a_session(server: Served, store: Store) -> None:
    sid = new_session(store, created_at=TIME)[0]
    mirror = Mirror(sid)
    for question in ("", "first", "second"):
        if question:
            ask(store, sid, question)
        have = f"?have={mirror.root}" if mirror.root else ""
        delta = decode_delta(server.ask("GET", f"/sessions/{sid}/refresh{have}")[2])
        mirror.apply(
            delta, lambda bates: decode_fetched(server.ask("GET", f"/sessions/{sid}/nodes/{bates}")[2])
        )
        again = decode_delta(server.ask("GET", f"/sessions/{sid}/refresh?have={mirror.root}")[2])
        assert again.state == "current"
    assert len(mirror.nodes) == 3
    assert server.ask("GET", "/sessions/20260304-050607-0000/refresh")[0] == 404
    assert server.ask("GET", f"/sessions/{sid}/refresh?have=x")[0] == 400


def test_content_refs_are_not_listed_where_none_is_kept(server: Served, store: Store) -> None:
    store.update_ref("tag/said", store.put({"text": "said", "type": "text"}), None)
    page = _get(server, "/refs?prefix=tag/")
    assert isinstance(page, dict) and page["refs"] == []


def test_every_path_is_described_and_every_description_is_served(server: Served) -> None:
    document = _get(server, "/openapi.json")
    assert isinstance(document, dict)
    for path, operations in document["paths"].items():
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            filled = path.replace("{id}", "0" * 64).replace("{name}", REF)
            filled = filled.replace("{sid}", "20260304-050607-0000").replace(
                "{bates}", "20260304-050607-0000-000000"
            )
            status, headers, body = server.ask(method, filled)
            if method.lower() in operations:
                described = operations[method.lower()]["responses"]
                assert str(status) in described, (method, path, status, body)
                assert headers["content-type"].partition(";")[0] in described[str(status)]["content"]
            else:
                assert status == 405 and headers["content-type"] == "application/json", (method, path)
    for path in ("/nothing", "/refs/a%0Ab/c", "/objects/%0A"):
        status, headers, _ = server.ask("GET", path)
        assert status in (400, 404) and headers["content-type"] == "application/json"


def test_schemathesis_finds_nothing(server: Served) -> None:
    _search(server, 25, repeatable=True)


@pytest.mark.soak
def test_schemathesis_finds_nothing_for_long(server: Served) -> None:
    _search(server, 1000, repeatable=False)


def _search(server: Served, examples: int, *, repeatable: bool) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, Phase, given, settings

    schema = schemathesis.openapi.from_dict(json.loads(server.ask("GET", "/openapi.json")[2]))
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    headers = {"Authorization": f"Bearer {server.writer}"}
    count = 0
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=examples,
            derandomize=repeatable,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        )
        @given(case=operation.as_strategy())
        def check(case: object) -> None:
            response = case.call(base_url=f"http://127.0.0.1:{server.port}", headers=headers)  # type: ignore[attr-defined]
            # What MessagePack or a pack has to say cannot be described: to OpenAPI any bytes will do.
            excluded = [positive_data_acceptance] if response.request.method == "POST" else []
            case.validate_response(response, headers=headers, excluded_checks=excluded)  # type: ignore[attr-defined]

        check()
        count += 1
    assert count == 12
