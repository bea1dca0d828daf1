"""Folders into the store and out again, byte for byte or with the reason why not."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from msgspec.structs import replace

from objstore import kinds
from objstore.errors import CheckFailed
from objstore.store import Store
from porcelain.flow.checking.folder_check import check_folder
from porcelain.flow.checking.folder_scan import scan
from porcelain.flow.folders.export_chain import chains_of, pick_chain
from porcelain.flow.folders.export_folder import export_chain
from porcelain.flow.folders.import_foreign import conversations_of, import_conversation
from porcelain.flow.folders.import_kinds import FlowFile
from porcelain.flow.formats.sd import SdPart, write_sd
from porcelain.flow.formats.sd_reading import read_sd
from porcelain.flow.formats.sf import SfNode, write_round
from porcelain.flow.formats.sf_reading import read_round
from tests.porcelain.flow.folders import (
    SESSION,
    build,
    chain,
    header,
    landed_files,
    place,
    place_round,
    row,
    rows,
    text,
    tree,
)
from tests.porcelain.importing.driving import HOME, objstore, succeed

FIRST = read_round(chain(landed_files(), 1)[0][0])
KEEP = ("config", "content.keep", "on")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that keeps content."""
    path = tmp_path / "store"
    succeed(path, "init")
    succeed(path, *KEEP)
    return path


def resealed(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """A landed file with its body changed, and closed again."""
    *lines, _ = data.splitlines(keepends=True)
    body = change(b"".join(lines))
    digest = hashlib.sha256(body).hexdigest()
    return body + b'{"t":"end","records":%d,"digest":"%s"}\n' % (len(lines) - 1, digest.encode())


def there_and_back(store: Path, root: Path) -> None:
    succeed(store, "flow", "import", root)
    out = root.parent / "out"
    succeed(store, "flow", "export", SESSION, out)
    assert tree(out) == tree(root)
    assert objstore(store, "flow", "verify").out == ""
    assert "the bytes were not checked" not in objstore(store, "flow", "verify").err
    succeed(store, "verify")


def test_a_folder_comes_out_as_it_went_in(store: Path, tmp_path: Path) -> None:
    root = build(tmp_path / "root")
    state = root / "_conversations" / SESSION / "conversation.state"
    state.write_text(
        f"schema       1\nconversation {SESSION}\nhead         2\n# a remark\nupdated_at   then\n"
    )
    there_and_back(store, root)
    # Nothing that was read again is new.
    assert '"newPages":0,"newRounds":0' in succeed(store, "flow", "import", "--json", root).out
    assert succeed(store, "flow", "export", "--json", SESSION, tmp_path / "out").out.count('"new":0') == 1


def test_what_a_collector_noted_comes_out_as_it_went_in(store: Path, tmp_path: Path) -> None:
    root, old = build(tmp_path / "root"), build(tmp_path / "old", landed_files()[:1], ends=(1,))
    for folder, said in ((root, 3), (old, 1)):
        streams = folder / SESSION / "streams"
        (folder / SESSION / "session.state").write_text(f"schema     1\nnext_seq   {said + 1}\n")
        (streams / "main" / "transcript.cursor").write_text(f"kind append\nlast_seq {said}\n")
    (root / SESSION / "streams" / "kid" / "meta.cursor").write_bytes(b"content_sha256 \xff\n")
    there_and_back(store, root)
    succeed(store, "flow", "import", old)  # it is behind, and so is what it notes
    succeed(store, "flow", "export", SESSION, tmp_path / "again")
    assert tree(tmp_path / "again") == tree(root)
    with Store.open(store, read_only=True) as found, found.snapshot() as view:
        assert not any(b"next_seq" in stored[1] for _, stored in view.objects())


@pytest.mark.parametrize("size", [1_000_000, 2_000_000])
def test_a_frame_that_no_pack_could_carry_is_not_taken(store: Path, tmp_path: Path, size: int) -> None:
    root = build(tmp_path / "root", ends=())
    (data, _), *_ = chain(landed_files(), 3)
    round_ = read_round(data)
    nodes = [*round_.nodes, SfNode("zz/" + "x" * size, 1, kind="odd")]
    written, digest = write_round(round_.header, nodes, round_.relations, round_.unresolved)
    place_round(root, written, 1, digest)
    if size < 1 << 20:
        there_and_back(store, root)
        succeed(tmp_path / "clone", "clone", store)
        return
    result = objstore(store, "flow", "import", root)
    assert result.code == 1 and "at most 1,048,576 can be stored" in result.err
    assert "internal" not in result.err and "xxx" not in result.err
    with Store.open(store, read_only=True) as found:
        assert not found.refs("flow/") and not found.refs("landed/")


def test_the_state_of_a_folder_that_is_behind_is_not_taken(store: Path, tmp_path: Path) -> None:
    root, old = build(tmp_path / "root"), build(tmp_path / "old", ends=(1,))
    for folder, said in ((root, "new"), (old, "old")):
        (folder / "_conversations" / SESSION / "conversation.state").write_text(f"# {said}\n")
    there_and_back(store, root)
    assert '"newRounds":0' in succeed(store, "flow", "import", "--json", old).out
    succeed(store, "flow", "export", SESSION, tmp_path / "out")
    assert tree(tmp_path / "out") == tree(root)


def test_files_that_structure_does_not_give(store: Path, tmp_path: Path) -> None:
    first, second, third = landed_files()
    files = [
        resealed(first, lambda body: body.replace(b'"ord":2', b'"invented": {"x":1e3},"ord":2')),
        resealed(second, lambda body: body.replace(b'"0123456789ab"', b'"' + b"0123456789abcdef" * 4 + b'"')),
        resealed(third, lambda body: body.replace(b'"k":"text"', b'"k":"poem"')),
    ]
    root = build(tmp_path / "root", files, ends=())
    for number, (data, _) in enumerate(chain(files, 3), 1):
        round_ = read_round(data)
        nodes = [
            SfNode("zz/odd", 1, kind="odd kind", attrs=Raw(b"[1,2]")),
            SfNode("zz/float", 1, kind="odd", attrs=Raw(b'{"a":1.5,"b":2,"label":"x & y"}')),
        ]
        written, digest = write_round(
            round_.header, [*round_.nodes, *nodes], round_.relations, round_.unresolved
        )
        assert b"x \\u0026 y" in written
        place_round(root, written, number, digest)
    there_and_back(store, root)


def test_frames_in_another_order_and_with_more_keys(store: Path, tmp_path: Path) -> None:
    root = build(tmp_path / "root", ends=())
    (data, _), *_ = chain(landed_files(), 3)
    head, *frames, commit = data.splitlines(keepends=True)
    frames[0] = frames[0].replace(b'"t":"node",', b'"t":"node","of":{"late":[true]},')
    body = head + b"".join(reversed(frames))
    digest = hashlib.sha256(body).hexdigest()
    place_round(root, body + commit.replace(commit[24:88], digest.encode()), 1, digest)
    there_and_back(store, root)


def test_the_published_roots(store: Path, tmp_path: Path, shared: Path) -> None:
    published = shared / "vectors" / "session-flow" / "rebuilt"
    if not published.is_dir():
        pytest.skip("the shared folder holds no session-flow vectors")
    name = "00000001-0000-4000-8000-000000000001"
    result = succeed(store, "flow", "import", published)
    assert "2 conversations, 7 new pages, 2 new rounds" in result.err
    for root, origin in (
        (published, "sf-befb6026a5776f48"),
        (published / "older-a67b640", "sf-3ad0dcd4cd53fa06"),
    ):
        out = tmp_path / origin
        succeed(store, "flow", "export", "--origin", origin, name, out)
        wanted = {
            path: data
            for path, data in tree(root).items()
            if path.endswith((".sd", ".sf")) and not path.startswith("older")
        }
        assert tree(out) == wanted
    # Of several tellings the one that covers most is meant, and one folder holds one of them.
    succeed(store, "flow", "export", name, tmp_path / "sf-befb6026a5776f48")
    clash = objstore(store, "flow", "export", name, tmp_path / "sf-3ad0dcd4cd53fa06")
    assert clash.code == 4 and "belongs to another telling" in clash.err
    assert objstore(store, "flow", "export", "--origin", "sf-zzz", name, tmp_path / "x").code == 3
    assert objstore(store, "flow", "export", "--origin", "sf-", name, tmp_path / "x").code == 2


def test_our_own_export_is_taken_in_without_content(tmp_path: Path) -> None:
    for name in ("one", "two"):
        succeed(tmp_path / name, "init")
    succeed(tmp_path / "one", "import", home=HOME)
    succeed(tmp_path / "one", "flow", "export", "--all", tmp_path / "out")
    checks = list(check_folder(scan(tmp_path / "out")))
    assert [one for check in checks for one in check.problems] == [] and sum(c.rounds for c in checks) >= 8
    result = succeed(tmp_path / "two", "flow", "import", tmp_path / "out")
    assert "cannot be exported again" not in result.err
    succeed(tmp_path / "two", "flow", "export", "--all", tmp_path / "again")
    assert tree(tmp_path / "again") == tree(tmp_path / "out")
    state = next((tmp_path / "out").rglob("conversation.state")).read_text().splitlines()
    assert [line[:13] for line in state] == [
        *("schema       ", "conversation ", "head         ", "head_digest  ", "through_seq  "),
        *("input_digest ", "parser       ", "policy       ", "updated_at   "),
    ]
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "out").rglob("*.s?")}
    assert modes == {0o444}
    assert next((tmp_path / "out").rglob("conversation.state")).stat().st_mode & 0o777 == 0o644


def test_without_content_structure_is_kept_and_that_is_said(tmp_path: Path) -> None:
    root, store = build(tmp_path / "root"), tmp_path / "store"
    succeed(store, "init")
    result = succeed(store, "flow", "import", root)
    assert "the structure of 5 files was kept, and the bytes cannot be exported again" in result.err
    checked = succeed(store, "flow", "verify")
    assert "5 imported files of which the store kept the structure only" in checked.err
    refused = objstore(store, "flow", "export", SESSION, tmp_path / "out")
    assert (
        refused.code == 1
        and "5 of 5 imported files cannot be written again: its text was not kept" in refused.err
    )
    assert not (tmp_path / "out").exists()
    # No word of the conversation is in the store, compressed or not: every object is looked at.
    words = (b"roof", b"tight", b"tiles", b"mend", b"Thank")
    with Store.open(store, read_only=True) as found, found.snapshot() as view:
        assert not [data for _, (_, data) in view.objects() if any(word in data for word in words)]
    # With content on, the same import adds what was missing, and no chain moves.
    refs = Store.open(store, read_only=True)
    before = {name: key for name, key in refs.refs().items() if not name.startswith("content/")}
    refs.close()
    succeed(store, *KEEP)
    succeed(store, "flow", "import", root)
    succeed(store, "flow", "export", SESSION, tmp_path / "out")
    assert tree(tmp_path / "out") == tree(root)
    with Store.open(store, read_only=True) as found:
        assert {n: k for n, k in found.refs().items() if not n.startswith("content/")} == before


def test_of_all_conversations_those_that_can_be_written_are(tmp_path: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "import", home=HOME)
    succeed(store, "flow", "export", "--all", tmp_path / "ours")
    succeed(store, "flow", "import", build(tmp_path / "root"))
    result = objstore(store, "flow", "export", "--all", tmp_path / "out")
    assert result.code == 1 and result.err.count("cannot be written again") == 1
    assert tree(tmp_path / "out") == tree(tmp_path / "ours")
    with Store.open(store, read_only=True) as found:
        own = found.store_id
    assert objstore(store, "flow", "export", "--all", "--origin", own, tmp_path / "mine").code == 0
    assert tree(tmp_path / "mine") == tree(tmp_path / "ours")


def test_a_session_of_two_conversations(store: Path, tmp_path: Path) -> None:
    root = build(tmp_path / "root")
    second = replace(FIRST.header, conversation="another")
    data, digest = write_round(second, FIRST.nodes, FIRST.relations, FIRST.unresolved)
    path = root / "_conversations" / "another" / "rounds" / f"r000001-{digest[:12]}.sf"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert "2 conversations" in succeed(store, "flow", "import", root).err
    out = tmp_path / "out"
    for name in ("another", SESSION):
        succeed(store, "flow", "export", name, out)
    assert tree(out) == tree(root)


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "a//x", "a\\x", "c:x", "a/./x", "", "a\nb"])
def test_no_file_is_ever_written_outside_of_the_folder(path: str) -> None:
    entry = FlowFile(bytes=1, digest="ab" * 32, form="whole", format="sd", number=1, path=path)
    with pytest.raises(CheckFailed):
        kinds.decode("flow-file", kinds.encode(entry))


def test_a_secret_is_replaced_and_the_file_not_kept(store: Path, tmp_path: Path) -> None:
    secret = "ghp_" + "F4kE" * 9
    files = [write_sd(header(1), rows(row(id="u1", from_="external", parts=[text(f"use {secret} now")])))]
    root = build(tmp_path / "root", files, ends=(1,))
    result = succeed(store, "flow", "import", root)
    assert "1 file with a secret in it" in result.err
    with Store.open(store, read_only=True) as found, found.snapshot() as view:
        assert not [data for _, (_, data) in view.objects() if secret.encode() in data]
    refused = objstore(store, "flow", "export", SESSION, tmp_path / "out")
    assert refused.code == 1 and "it held a secret, which was not kept" in refused.err
    assert succeed(store, "flow", "verify").out == ""


def test_a_folder_with_a_problem_is_not_taken_in(store: Path, tmp_path: Path) -> None:
    root = build(tmp_path / "root")
    path = next((root / SESSION / "streams" / "kid").iterdir())
    path.write_bytes(path.read_bytes().replace(b"look", b"Look"))
    result = objstore(store, "flow", "import", root)
    assert result.code == 1
    assert f"{path}:4: digest: " in result.err and "1 problem: nothing was imported" in result.err
    assert objstore(store, "flow", "conversations").code == 3
    assert objstore(store, "flow", "import", tmp_path / "nowhere").code == 3
    (tmp_path / "empty").mkdir()
    assert objstore(store, "flow", "import", tmp_path / "empty").code == 2


def test_a_folder_that_begins_late_is_refused(store: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    place(root, write_sd(header(2), rows(row(from_="runtime"))))
    result = objstore(store, "flow", "import", root)
    assert result.code == 1 and "landed file 1 is missing before it" in result.err


def test_a_growing_folder_gives_the_same_chains(tmp_path: Path) -> None:
    files = landed_files()
    rounds = chain(files, 1, 2, 3)
    refs = []
    for name, steps in (("once", ((3, 3),)), ("growing", ((1, 1), (3, 1), (3, 2), (3, 3)))):
        root, store = tmp_path / name, tmp_path / f"{name}.store"
        succeed(store, "init")
        for landed, written in steps:
            for data in files[:landed]:
                place(root, data)
            for number, (data, digest) in enumerate(rounds[:written], 1):
                place_round(root, data, number, digest)
            succeed(store, "flow", "import", root)
        with Store.open(store, read_only=True) as found:
            refs.append(found.refs())
    assert refs[0] == refs[1] and len(refs[0]) == 4
    # An older copy of the folder takes nothing back.
    succeed(tmp_path / "once.store", "flow", "import", build(tmp_path / "old", files[:1], ends=(1,)))
    with Store.open(tmp_path / "once.store", read_only=True) as found:
        assert found.refs() == refs[0]


def test_another_history_under_the_same_origin_is_a_conflict(store: Path, tmp_path: Path) -> None:
    files = landed_files()
    succeed(store, "flow", "import", build(tmp_path / "root", files, ends=(1,)))
    other = [files[0], write_sd(header(2), rows(row(from_="runtime"), ord=6, off=205))]
    result = objstore(store, "flow", "import", build(tmp_path / "other", other, ends=(1,)))
    assert result.code == 4 and "another history" in result.err


def test_a_session_without_rounds(store: Path, tmp_path: Path) -> None:
    root = build(tmp_path / "root", ends=())
    there_and_back(store, root)
    with Store.open(store, read_only=True) as found, found.snapshot() as view:
        (one,) = chains_of(view, "quill", SESSION)
        assert one.origin.startswith("sd-") and one.flow is None
        assert pick_chain(view, "quill", SESSION, "sd-") == one


def test_rounds_without_landed_files_are_a_problem(store: Path, tmp_path: Path) -> None:
    root = build(tmp_path / "root")
    shutil.rmtree(root / SESSION)
    result = objstore(store, "flow", "import", root)
    assert result.code == 1 and "landed files 2 to 3 are missing" in result.err


# -- publishing ------------------------------------------------------------------------------------------------------


def test_what_died_is_swept_and_reservations_are_taken_over(store: Path, tmp_path: Path) -> None:
    root, out = build(tmp_path / "root"), tmp_path / "out"
    succeed(store, "flow", "import", root)
    folder = out / "_conversations" / SESSION / "rounds"
    folder.mkdir(parents=True)
    name = next((root / "_conversations" / SESSION / "rounds").glob("r000001-*")).name
    stale, fresh, foreign, reserved = (
        folder / ".tmp-objstore-stale",
        folder / ".tmp-objstore-fresh",
        folder / ".tmp-other",
        folder / name,
    )
    for path in (stale, fresh, foreign, reserved):
        path.write_bytes(b"" if path is reserved else b"half a round")
    for path in (stale, foreign, reserved):
        os.utime(path, (1, 1))
    succeed(store, "flow", "export", SESSION, out)
    assert not stale.exists() and fresh.exists() and foreign.exists()
    fresh.unlink()
    foreign.unlink()
    assert tree(out) == tree(root)


def test_a_reservation_that_is_fresh_is_somebody_elses(store: Path, tmp_path: Path) -> None:
    root, out = build(tmp_path / "root"), tmp_path / "out"
    succeed(store, "flow", "import", root)
    folder = out / "_conversations" / SESSION / "rounds"
    folder.mkdir(parents=True)
    (folder / next((root / "_conversations").rglob("r000001-*")).name).write_bytes(b"")
    assert objstore(store, "flow", "export", SESSION, out).code == 4


def test_a_file_that_was_changed_is_never_replaced(store: Path, tmp_path: Path) -> None:
    root, out = build(tmp_path / "root"), tmp_path / "out"
    succeed(store, "flow", "import", root)
    succeed(store, "flow", "export", SESSION, out)
    path = next((out / SESSION).rglob("*.sd"))
    path.chmod(0o644)
    path.write_bytes(b"mine")
    assert objstore(store, "flow", "export", SESSION, out).code == 4
    assert path.read_bytes() == b"mine"


def test_without_links_a_name_is_reserved_first(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, out = build(tmp_path / "root"), tmp_path / "out"
    succeed(store, "flow", "import", root)

    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    succeed(store, "flow", "export", SESSION, out)
    assert tree(out) == tree(root)


def export_in_child(store: Path, out: Path, calls: int) -> int:
    """Export in a process that is killed at its ``calls``-th system call that writes; the signal that ended it."""
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            left = calls

            def counted(function: Callable[..., object]) -> Callable[..., object]:
                def call(*arguments: object, **named: object) -> object:
                    nonlocal left
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return function(*arguments, **named)

                return call

            for name in ("fsync", "link", "chmod", "replace", "unlink", "mkdir"):
                setattr(os, name, counted(getattr(os, name)))
            with Store.open(store, read_only=True) as found, found.snapshot() as view:
                export_chain(view, pick_chain(view, "quill", SESSION, None), out)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_anywhere_an_export_leaves_a_valid_folder_and_is_completed(
    store: Path, tmp_path: Path
) -> None:
    root = build(tmp_path / "root")
    (root / "_conversations" / SESSION / "conversation.state").write_text("schema       1\n")
    succeed(store, "flow", "import", root)
    calls, ended, whole = 0, signal.SIGKILL.value, tree(root)
    while ended:
        calls += 1
        out = tmp_path / f"out{calls}"
        ended = export_in_child(store, out, calls)
        if out.exists():
            checks = list(check_folder(scan(out)))
            assert [one for check in checks for one in check.problems] == []
            present = {path: data for path, data in tree(out).items() if "/.tmp-" not in path}
            assert present.items() <= whole.items()
        with Store.open(store, read_only=True) as found, found.snapshot() as view:
            export_chain(view, pick_chain(view, "quill", SESSION, None), out)
        left = {path: data for path, data in tree(out).items() if "/.tmp-" not in path}
        assert left == whole
    assert calls > 20


# -- properties ------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def parts(draw: st.DrawFn) -> SdPart:
    optional = st.one_of(st.just(UNSET), TEXTS)
    data = draw(st.one_of(st.just(None), DATA))
    return SdPart(
        draw(st.sampled_from(["text", "call", "result", "media", "data", "unknown", "reasoning", "verse"])),
        draw(optional),
        UNSET if data is None else Raw(json.dumps(data).encode()),
        id=draw(optional),
        name=draw(optional),
        failed=draw(st.sampled_from([True, False, UNSET])),
        state=draw(st.sampled_from(["available", "truncated", "hash_only", UNSET])),
        bytes=draw(st.sampled_from([UNSET, 0, 7])),
        content=draw(st.sampled_from([UNSET, UNSET, "ab" * 32, "no id"])),
    )


@settings(max_examples=20)
@given(st.lists(st.lists(parts(), max_size=3), min_size=1, max_size=3), st.booleans(), TEXTS)
def test_any_landed_file_comes_out_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, records: list[list[SdPart]], html: bool, label: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    data = write_sd(header(1), rows(*(row(label=label, parts=one) for one in records)), html=html)
    root = build(folder / "root", [data], ends=(1,))
    with Store.init(folder / "store") as store:
        (found,) = conversations_of(scan(root))
        imported = import_conversation(store, found, keep=True)
        assert imported.withheld == 0
        with store.snapshot() as view:
            export_chain(view, pick_chain(view, "quill", SESSION, None), folder / "out")
    assert tree(folder / "out") == tree(root)
    assert read_sd(data).header.session == SESSION


def test_what_a_store_keeps_makes_no_difference_to_its_files(tmp_path: Path) -> None:
    """A private store, one that keeps content, and a copy that came without it write the same files."""
    private, keeping, copy = (tmp_path / name for name in ("private", "keeping", "copy"))
    succeed(private, "import", home=HOME)
    succeed(keeping, "init")
    succeed(keeping, *KEEP)
    succeed(keeping, "import", home=HOME)
    succeed(copy, "clone", keeping)
    with Store.open(keeping) as one, Store.open(copy) as other:
        kept = [set(), set()]
        for found, store in zip(kept, (one, other), strict=True):
            with store.snapshot() as view:
                found |= {stored.kind for _, stored in view.objects()}
    assert {"text"} <= kept[0]
    assert not {"text", "blob"} & kept[1]
    trees = []
    for store in (private, keeping, copy):
        succeed(store, "flow", "export", "--all", tmp_path / f"{store.name}-files")
        trees.append(tree(tmp_path / f"{store.name}-files"))
    assert trees[0] == trees[1] == trees[2]
    assert len(trees[0]) > 40
