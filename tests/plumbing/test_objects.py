"""The commands that look at all of a store: ls-objects, count-objects, fold, verify; and config."""

from __future__ import annotations

import json
import re
from pathlib import Path

import lmdb
import pytest

from objstore.kinds import encode
from objstore.store import Store

ONE = "387e05db72a7b26f6faafc90e603045c4c765af2fb8438cf7ade4b3236a98c38"
TWO = "821bb05d9ad21035bd3e9e9a7009519e392fb2607d69dfdfecaf1c3c1f4ac960"


# -- ls-objects, count-objects -----------------------------------------------------------------------------------------


def test_ls_objects_lists_in_order_of_arrival(store) -> None:
    blob = store(
        "hash-object", "-w", "--stdin", stdin='{"type":"blob","media_type":"a/b","base64":""}'
    ).out.strip()
    assert store("ls-objects") == (0, f"{ONE}\n{TWO}\n{blob}\n", "")
    assert store("ls-objects", "-z").out == f"{ONE}\0{TWO}\0{blob}\0"
    assert store("ls-objects", "--long").out == f"{ONE} text 28\n{TWO} text 28\n{blob} blob 46\n"
    assert store("ls-objects", "--type=blob").out == f"{blob}\n"
    assert store("ls-objects", "-l", "--type", "blob", "--type", "chunks").out == f"{blob} blob 46\n"
    assert store("ls-objects", "--type=text", "--type=blob").out == f"{ONE}\n{TWO}\n{blob}\n"
    assert store("ls-objects", "--type=unheard-of") == (0, "", "")
    assert store("ls-objects", "--json", "--type=blob").out == f'{{"id":"{blob}","size":46,"type":"blob"}}\n'
    assert store("ls-objects", "extra").code == 2


def test_count_objects(store) -> None:
    store("hash-object", "-w", "--stdin", stdin='{"type":"blob","media_type":"a/b","base64":""}')
    done = store("count-objects")
    assert re.fullmatch(r"3 objects, \d+ bytes on disk\n", done.out)
    assert (done.code, done.err) == (0, "")
    disk = int(done.out.split()[2])
    assert json.loads(store("count-objects", "--json").out) == {"count": 3, "size_disk": disk}
    shown = store("count-objects", "-v").out
    blob, text = (int(line.split()[-1]) for line in shown.splitlines()[-2:])
    assert 38 < blob <= 38 + 46 and 2 * 38 < text <= 2 * 38 + 56
    assert shown == (
        f"count: 3\nsize: 102\nsize-stored: {blob + text}\nsize-disk: {disk}\nrefs: 1\n"
        f"type: blob 1 46 {blob}\ntype: text 2 56 {text}\n"
    )
    assert json.loads(store("count-objects", "--verbose", "--json").out) == {
        "count": 3,
        "refs": 1,
        "size": 102,
        "size_disk": disk,
        "size_stored": blob + text,
        "types": {
            "blob": {"count": 1, "size": 46, "size_stored": blob},
            "text": {"count": 2, "size": 56, "size_stored": text},
        },
    }


# -- fold --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def chains(objstore, tmp_path: Path):
    """Two chains, ``chain/a`` of two rounds and ``chain/b`` of one, that disagree on the frame ``x``."""
    from objstore.core import ListOf, Round

    objstore("init")
    ids = {}

    def frame(batch, frame_id: str, revision: int, note: str, *, removed: bool = False) -> str:
        value = {
            "id": frame_id,
            "note": note,
            "revision": revision,
            **({"tombstone": True} if removed else {}),
        }
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        ids[note] = batch.put("note", data)
        return ids[note]

    def close(batch, chain: str, number: int, frames: list[str], previous: str | None) -> str:
        listed = batch.put("list", encode(ListOf(items=frames)))
        before = {"previous": previous} if previous else {}
        return batch.put("round", encode(Round(chain=chain, frames=[listed], round=number, **before)))

    with Store.open(tmp_path / "store") as store:
        batch = store.batch()
        first = close(batch, "a", 1, [frame(batch, "x", 1, "x1"), frame(batch, "y", 1, "y1")], None)
        frames = [
            frame(batch, "x", 2, "x2"),
            frame(batch, "y", 2, "y2", removed=True),
            frame(batch, "z z", 1, "z1"),
        ]
        batch.move_ref("chain/a", close(batch, "a", 2, frames, first), None, "")
        batch.move_ref("chain/b", close(batch, "b", 1, [frame(batch, "x", 2, "other x2")], None), None, "")
        store.commit(batch)
    return objstore, ids


def test_fold_prints_the_joined_state(chains) -> None:
    objstore, ids = chains
    low, high = sorted((ids["x2"], ids["other x2"]))
    assert objstore("fold", "chain/a") == (0, f"2 {ids['x2']} x\n1 {ids['z1']} z z\n", "")
    assert objstore("fold", "chain/a", "chain/b").out == f"2 {high} x\n1 {ids['z1']} z z\n"
    assert objstore("fold", "chain/b", "chain/a").out == f"2 {high} x\n1 {ids['z1']} z z\n"
    assert objstore("fold", "--at", "1", "chain/a").out == f"1 {ids['x1']} x\n1 {ids['y1']} y\n"
    assert objstore("fold", "--at", "0", "chain/a").out == ""
    assert objstore("fold", "--conflicts", "chain/a", "chain/b").out == f"2 {low} x\n2 {high} x\n"
    assert objstore("fold", "--id", "x", "-z", "chain/a").out == f"2 {ids['x2']} x\0"
    assert objstore("fold", "--json", "--id=x", "chain/a", "chain/b").out == (
        f'{{"conflicts":["{low}"],"frame":"x","id":"{high}","revision":2}}\n'
    )


def test_fold_refuses(chains) -> None:
    objstore, ids = chains
    assert objstore("fold", "--id", "y", "chain/a") == (3, "", "objstore: y: the frame was removed\n")
    assert objstore("fold", "--id", "w", "chain/a") == (3, "", "objstore: w: no such frame\n")
    assert objstore("fold", "chain/none").code == 3
    assert objstore("fold").code == 2
    done = objstore("fold", ids["x1"])
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("objstore: note: unknown kind of object\n")


# -- verify ------------------------------------------------------------------------------------------------------------


def test_verify_of_a_good_store(store) -> None:
    assert store("verify") == (0, "", "checked 2 objects, 1 ref, 0 chains: no problem\n")
    assert store("-q", "verify", "--since", "2") == (0, "", "")
    assert store("verify", "--since", "2").err == "checked 1 object, 1 ref, 0 chains: no problem\n"
    assert store("-q", "verify", "--json").out == '{"chains":0,"objects":2,"problems":[],"refs":1}\n'


def test_verify_of_a_damaged_store(store, tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "store"), max_dbs=16) as env, env.begin(write=True) as txn:
        objects = env.open_db(b"objects", txn=txn)
        number = (1).to_bytes(8, "big")
        value = bytearray(txn.get(number, db=objects))
        value[-1] ^= 1
        txn.put(number, bytes(value), db=objects)
    what = "the stored bytes do not match their checksum"
    assert store("verify", "--processes", "1") == (
        1,
        f"{ONE}\tchecksum\t{what}\n",
        "checked 2 objects, 1 ref, 0 chains: 1 problem\n",
    )
    assert store("verify", "--json").out == (
        f'{{"chains":0,"objects":2,"problems":[{{"rule":"checksum","what":"{what}","where":"{ONE}"}}],"refs":1}}\n'
    )
    assert store("cat", ONE) == (
        5,
        "",
        f"objstore: {ONE}: damaged: stored bytes do not match their checksum\nhint: run: objstore verify\n",
    )
    assert store("cat", TWO).code == 0


# -- config ------------------------------------------------------------------------------------------------------------


def test_config_reads_and_writes(store) -> None:
    assert store("config", "content.keep") == (0, "off\n", "")
    assert store("config", "content", "keep", "on") == (0, "", "")
    assert store("config", "content", "keep").out == "on\n"
    assert store("config", "user.name", "Ada Example").code == 0
    assert store("config", "--list").out == "content.keep=on\nuser.name=Ada Example\n"
    assert store("config", "--list", "-z").out == "content.keep=on\0user.name=Ada Example\0"
    assert store("config", "--json", "user.name").out == '{"name":"user.name","value":"Ada Example"}\n'
    assert store("config", "--json", "host.label", "desk").out == '{"name":"host.label","value":"desk"}\n'
    assert store("config", "--unset", "content.keep").code == 0
    assert store("config", "content.keep").out == "off\n"


def test_config_refuses(store) -> None:
    assert store("config", "user.name") == (
        3,
        "",
        "objstore: user.name: not set\nhint: objstore config user.name VALUE\n",
    )
    assert store("config", "user.nam") == (
        2,
        "",
        "objstore: config: user.nam: no such setting\nhint: settings: content.keep host.label user.name\n",
    )
    assert store("config", "content.keep", "maybe") == (
        2,
        "",
        "objstore: config: 'maybe': neither on nor off\n",
    )
    for words in (
        (),
        ("user.name", ""),
        ("user.name", "a\nb"),
        ("--list", "x"),
        ("--unset", "user.name", "x"),
        ("a", "b", "c", "d"),
    ):
        done = store("config", *words)
        assert (done.code, done.out) == (2, ""), words
    assert store("config", "--list").out == "content.keep=off\n"
