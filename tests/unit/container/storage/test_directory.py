"""One store's directory: lock, OFFSET, removal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homeport.config.errors import StoreError, WireError
from homeport.config.system_stream import SystemStream
from homeport.container.progress import offset_file
from homeport.container.storage.directory import StoreDirectory

CHANGELOG = SystemStream("kafka", "store1-changelog")


def _offset(directory: StoreDirectory) -> int | None:
    found = directory.read_offset(CHANGELOG, 0)
    return None if found is None else found.offset


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[StoreDirectory]:
    """An empty one."""
    found = StoreDirectory(tmp_path)
    yield found
    found.release()


def test_offset_files_are_written_beside_the_store(
    directory: StoreDirectory, tmp_path: Path
) -> None:
    """Both forms, Samza's bytes, nothing temporary left."""
    assert directory.read_offset(CHANGELOG, 0) is None
    assert not directory.has_content
    directory.write_offset(42)
    directory.write_offset_v2(CHANGELOG, 0, 42)
    assert _offset(directory) == 42
    assert (tmp_path / "OFFSET").read_bytes().hex() == "aced0005770c000000003224b08800023432"
    assert (tmp_path / "OFFSET-v2").read_bytes().endswith(b'{"kafka.store1-changelog.0":"42"}')
    assert {f.name for f in tmp_path.iterdir()} == {"OFFSET", "OFFSET-v2", ".homeport-lock"}


def test_a_standbys_offset_is_written_once_more(directory: StoreDirectory, tmp_path: Path) -> None:
    """R36: SIDE-INPUT-OFFSETS, where Samza's standbys look; an active one leaves none to go old."""
    directory.write_offset_v2(CHANGELOG, 0, 42, is_standby=True)
    assert (tmp_path / "SIDE-INPUT-OFFSETS").read_bytes() == (tmp_path / "OFFSET-v2").read_bytes()
    (tmp_path / "OFFSET-v2").unlink()
    assert _offset(directory) == 42
    directory.write_offset_v2(CHANGELOG, 0, 43)
    assert not (tmp_path / "SIDE-INPUT-OFFSETS").exists()
    directory.write_offset_v2(CHANGELOG, 0, 44, is_standby=True)
    directory.empty()
    assert not directory.has_content


def test_emptying_keeps_the_lock(directory: StoreDirectory, tmp_path: Path) -> None:
    """Everything else goes, folders too."""
    directory.write_offset(1)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_bytes(b"x")
    directory.empty()
    assert not directory.has_content
    with pytest.raises(StoreError):
        StoreDirectory(tmp_path)


def test_the_map_counts_before_other_offset_files(
    directory: StoreDirectory, tmp_path: Path
) -> None:
    """R12, R13: OFFSET-v2 before OFFSET, OFFSET before SIDE-INPUT-OFFSETS."""
    (tmp_path / "SIDE-INPUT-OFFSETS").write_bytes(offset_file.encode("100000001"))
    assert _offset(directory) == 100000001
    directory.write_offset(139)
    assert _offset(directory) == 139
    directory.write_offset_v2(CHANGELOG, 0, 200000002)
    assert _offset(directory) == 200000002


def test_the_time_of_a_file_that_cannot_be_read_is_an_error(directory: StoreDirectory) -> None:
    """Not a time long ago."""
    directory.write_text("ADJUNCT-META", "{}")
    directory.set_written("ADJUNCT-META", 17_000)
    assert directory.written_ms("ADJUNCT-META") == 17_000
    with pytest.raises(WireError, match="it cannot be read: No such file"):
        directory.written_ms("CATALOGUE")
