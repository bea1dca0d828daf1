"""A database whose file is damaged: telling it before the damage ends the process, and what there is to do."""

from __future__ import annotations

import os

from objstore.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RESTORE = "put a backup in its place, or move it away and clone it from a remote"
#: Reads all that is in use of the database in the folder that it is given.
_READ_ALL = """
import sys, lmdb
with lmdb.open(sys.argv[1], readonly=True, lock=False, max_dbs=16) as env, env.begin() as txn:
    for name in [name for name, _ in txn.cursor()]:
        for _ in txn.cursor(db=env.open_db(name, txn=txn, create=False)):
            pass
"""


def refuse_if_cut(path: str, env: Any) -> None:
    """Raise ``StorageError`` where the file of the LMDB environment in ``path`` ends before a page that is in use:
    whoever reads that page through the map is ended by SIGBUS.

    A file may be a little shorter than what is allotted, where the last pages hold nothing. So of a short one another
    process, which may die of it, reads everything.
    """
    allotted = (env.info()["last_pgno"] + 1) * env.stat()[
        "psize"
    ]  # before the size: files grow before they are used
    size = os.stat(os.path.join(path, "data.mdb")).st_size
    if size >= allotted:
        return
    import subprocess
    import sys

    if subprocess.run([sys.executable, "-c", _READ_ALL, path], check=False, capture_output=True).returncode:
        raise StorageError(
            f"{path}: damaged: data.mdb was cut to {size:,} of {allotted:,} bytes", hint=RESTORE
        )
