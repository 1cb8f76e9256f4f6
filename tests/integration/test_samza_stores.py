"""Store directories and their offset files, read and written by Samza's published classes."""

from __future__ import annotations

from pathlib import Path

import pytest
from samza_peer import SamzaPeer

from homeport.config.system_stream import SystemStream
from homeport.container.progress.host_directories import task_directory
from homeport.container.storage.directory import StoreDirectory
from homeport.job_coordinator.model.ids import TaskName

CHANGELOG = SystemStream("kafka", "store1-changelog")
DOTTED = SystemStream("kafka", "a.b-changelog")
SAMZAS = {False: {"OFFSET", "OFFSET-v2"}, True: {"SIDE-INPUT-OFFSETS", "OFFSET-v2"}}
OURS = {False: {"OFFSET", "OFFSET-v2"}, True: {"OFFSET", "OFFSET-v2", "SIDE-INPUT-OFFSETS"}}


def _place(path: Path, changelog: SystemStream, *, side: bool) -> dict[str, object]:
    return {
        "directory": str(path),
        "system": changelog.system,
        "stream": changelog.stream,
        "partition": 3,
        "side": side,
    }


def _files(path: Path) -> dict[str, bytes]:
    found = {f.name: f.read_bytes() for f in path.iterdir() if not f.name.startswith(".")}
    return {name: data for name, data in found.items() if not name.endswith(".crc")}


def _written(path: Path, offset: int, *, side: bool) -> dict[str, bytes]:
    """Our files of that offset, {name: bytes}."""
    directory = StoreDirectory(path)
    directory.write_offset(offset)
    directory.write_offset_v2(CHANGELOG, 3, offset, is_standby=side)
    directory.release()
    return _files(path)


def _read(path: Path, changelog: SystemStream) -> int | None:
    directory = StoreDirectory(path)
    found, _ = directory.read_offset(changelog, 3)
    directory.release()
    return found


@pytest.mark.parametrize("side", [False, True])
@pytest.mark.parametrize("offset", [0, 42, 9_223_372_036_854_775_807])
def test_samza_reads_our_offset_and_writes_the_same_bytes(
    samza: SamzaPeer, tmp_path: Path, offset: int, *, side: bool
) -> None:
    """R36: of an active task's store and of a standby's; each file that both write is the same."""
    ours = _written(tmp_path / "ours", offset, side=side)
    assert set(ours) == OURS[side]
    place = _place(tmp_path / "ours", CHANGELOG, side=side)
    assert samza.ask("read-offset", place) == str(offset)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    written = {**_place(theirs, CHANGELOG, side=side), "offset": str(offset)}
    assert samza.ask("write-offset", written) is True
    assert set(_files(theirs)) == SAMZAS[side]
    assert _files(theirs) == {name: ours[name] for name in SAMZAS[side]}
    assert _read(theirs, CHANGELOG) == offset


@pytest.mark.parametrize("name", ["OFFSET", "OFFSET-v2", "SIDE-INPUT-OFFSETS"])
def test_either_reads_each_single_file_of_the_other(
    samza: SamzaPeer, tmp_path: Path, name: str
) -> None:
    """R12: what an older version left, before OFFSET-v2 was; and the map by itself."""
    side = name == "SIDE-INPUT-OFFSETS"
    path = tmp_path / "ours"
    for other in set(_written(path, 42, side=side)) - {name}:
        (path / other).unlink()
    assert samza.ask("read-offset", _place(path, CHANGELOG, side=side)) == "42"
    assert _read(path, CHANGELOG) == 42


def test_either_takes_the_map_before_the_bare_offset(samza: SamzaPeer, tmp_path: Path) -> None:
    """R13: a container that died between the two files left an older map."""
    directory = StoreDirectory(tmp_path)
    directory.write_offset(100000001)
    directory.write_offset_v2(CHANGELOG, 3, 200000002)
    directory.release()
    assert samza.ask("read-offset", _place(tmp_path, CHANGELOG, side=False)) == "200000002"
    assert _read(tmp_path, CHANGELOG) == 200000002


def test_a_topic_with_dots_is_read_by_us_alone(samza: SamzaPeer, tmp_path: Path) -> None:
    """Samza writes its name as we do and cannot take it apart again (reference, section 17)."""
    written = {**_place(tmp_path, DOTTED, side=False), "offset": "42"}
    assert samza.ask("write-offset", written) is True
    assert samza.ask("read-offset", _place(tmp_path, DOTTED, side=False)) is None
    assert _read(tmp_path, DOTTED) == 42


@pytest.mark.parametrize("mode", ["Active", "Standby"])
@pytest.mark.parametrize(
    "task", ["Partition 0", "SystemStreamPartition [kafka, in, 0]", "a_b c", "käse 1"]
)
def test_directories_have_samzas_names(samza: SamzaPeer, task: str, mode: str) -> None:
    """Of an active task; a standby's is that of its active one."""
    name = TaskName(task)
    asked = f"Standby-{task}-0" if mode == "Standby" else task
    found = samza.ask("store-directory", ["/base", "my store", asked, mode])
    assert found == str(Path("/base") / task_directory("my store", name))
