"""What stores on the disk hold, for tests: copies are opened, as owners keep the directories."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from rocksdict import AccessType, Options, Rdict

from homeport.container.progress import offset_file
from homeport.container.rocksdb.rocksdb_store import POSITION_KEY


def entries(directory: Path, scratch: Path) -> dict[bytes, bytes]:
    """Every key and value of a store's directory, as its owner last flushed it.

    ``scratch``: a folder for the copy, which is gone afterwards.

    Raises:
        OSError: the owner was changing files meanwhile, as a compaction does.
    """
    copy = scratch / "copy"
    try:
        shutil.copytree(directory, copy)
        try:
            store = Rdict(str(copy), Options(raw_mode=True), access_type=AccessType.read_only())
        except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
            raise OSError(f"{directory}: the copy is not whole: {error}") from None
        # Raw: every key and value is bytes, which the binding's stubs do not know.
        found = dict(cast("Iterable[tuple[bytes, bytes]]", store.items()))
        store.close()
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    assert found.pop(POSITION_KEY, None) is not None, f"{directory}: no position in it"
    return found


def offset(directory: Path) -> int:
    """What OFFSET says; -1 where there is none yet."""
    try:
        return int(offset_file.decode((directory / "OFFSET").read_bytes()))
    except FileNotFoundError:
        return -1
