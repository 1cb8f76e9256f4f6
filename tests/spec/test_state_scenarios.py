"""Samza's acceptance scenarios of stores (reference 14.7) that follow from a store's own directory.

Ours differs on purpose in two ways. A store has no checkpoints beside it and nothing is ever
trimmed: it holds nothing that Kafka has not committed, so that its own position takes the place of
Samza's checkpoint ``c`` and of the local ``l``. And OFFSET is written on a clean stop too, as
HA-YARN says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stores_in_memory_log import (
    CONFIG,
    NOTHING,
    TASK,
    Log,
    directory_of,
    one_committed,
    opened,
    transaction,
)
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.container.progress import offset_file
from homeport.container.progress.restore import ChangelogTopic
from homeport.job_coordinator.coordinator_stream.message import MessageType, tombstone
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import RestoreKind

IN_MEMORY = Config({**CONFIG, "stores.s.factory": "in-memory"})
CLEANED = Config({**CONFIG, "stores.s.clean.on.container.start": "true"})


def _log_of(oldest: int, newest: int) -> Log:
    """A changelog with records from ``oldest`` to ``newest``, each of a key of its own."""
    log = Log()
    log.records = [(b"k%02d" % i, b"%d" % i) for i in range(newest + 1)]
    log.oldest = oldest
    return log


def _stood_at(folder: Path, position: int) -> None:
    storage, _ = opened(folder, _log_of(0, position))
    storage.close()


def restored(folder: Path, log: Log, config: Config = CONFIG) -> tuple[RestoreKind, int, int]:
    """How it is restored, the kind and the range; it then holds just what the changelog does."""
    storage, result = opened(folder, log, config)
    (plan,) = log.plans
    held = {key for key, _ in storage.overlay("s", TASK).scan()}
    assert held == {r[0] for r in log.records[log.oldest :] if r is not None}
    storage.close()
    return result.kind, plan.start, plan.head - 1


def test_a_new_store_is_read_from_the_oldest_offset(tmp_path: Path) -> None:
    """R1: from offset 0 where that is kept; of OFFSET at a stop see R7."""
    assert restored(tmp_path, _log_of(0, 9)) == (RestoreKind.FULL, 0, 9)
    assert (directory_of(tmp_path) / offset_file.OFFSET_FILE).exists()


def test_without_an_offset_file_a_directory_is_emptied(tmp_path: Path) -> None:
    """R2: of a store with a changelog as of one without, whatever was in it."""
    log = one_committed(tmp_path)
    unlogged = tmp_path / "scratch" / "t" / "Partition_0"
    for folder in (directory_of(tmp_path), unlogged):
        (folder / "left").write_text("x")
    for name in (offset_file.OFFSET_FILE, offset_file.OFFSET_V2_FILE):
        (directory_of(tmp_path) / name).unlink()
    storage, result = opened(tmp_path, log)
    assert result.refusal == "missing-offset"
    assert not (directory_of(tmp_path) / "left").exists()
    assert not (unlogged / "left").exists()
    storage.close()


def test_offset_is_written_at_a_stop_too(tmp_path: Path) -> None:
    """R7: Samza writes none at a stop; HA-YARN: "This is also done on container shutdown".

    Of an empty store there is nothing to say, and no file.
    """
    log = Log()
    storage, result = opened(tmp_path, log)
    assert result == NOTHING
    storage.flush()
    storage.close()
    assert not (directory_of(tmp_path) / offset_file.OFFSET_FILE).exists()
    storage, _ = opened(tmp_path, log)
    transaction(storage, log, b"a", b"1")
    storage.flush()
    storage.close()
    assert (directory_of(tmp_path) / offset_file.OFFSET_FILE).exists()


def test_an_empty_changelog_leaves_no_offset_files(tmp_path: Path) -> None:
    """R8: both files are written at a commit; with nothing in the changelog both are gone."""
    log = one_committed(tmp_path)
    directory = directory_of(tmp_path)
    offset = offset_file.decode((directory / offset_file.OFFSET_FILE).read_bytes())
    both = offset_file.decode((directory / offset_file.OFFSET_V2_FILE).read_bytes())
    assert (offset, both) == ("0", '{"kafka.log.0":"0"}')
    log.records, log.topic = [], ChangelogTopic("id-2", 1_000_000)
    storage, result = opened(tmp_path, log)
    assert result.refusal == "recreated"
    storage.flush()
    assert not (directory / offset_file.OFFSET_FILE).exists()
    assert not (directory / offset_file.OFFSET_V2_FILE).exists()
    storage.close()


def test_reading_goes_on_after_the_kept_offset(tmp_path: Path) -> None:
    """R9: 139 and an older oldest offset: from 140 on."""
    _stood_at(tmp_path, 139)
    log = _log_of(0, 150)
    assert restored(tmp_path, log) == (RestoreKind.TAIL, 140, 150)


def test_an_offset_below_the_oldest_is_not_gone_on_from(tmp_path: Path) -> None:
    """R10: from the oldest on, 145, as in Samza; but of what the directory had, nothing stays.

    What was deleted between the two offsets would be kept for ever.
    """
    _stood_at(tmp_path, 139)
    log = _log_of(145, 150)
    assert restored(tmp_path, log) == (RestoreKind.FULL, 145, 150)


def test_without_a_directory_reading_begins_at_the_oldest_offset(tmp_path: Path) -> None:
    """R11: at 3, where that is the oldest."""
    assert restored(tmp_path, _log_of(3, 9)) == (RestoreKind.FULL, 3, 9)


def test_a_store_without_a_changelog_is_not_restored(tmp_path: Path) -> None:
    """R15: its directory is emptied, and nothing is read for it."""
    log = one_committed(tmp_path)
    storage, _ = opened(tmp_path, log)
    assert list(storage.overlay("t", TASK).scan()) == []
    storage.close()


def test_a_store_that_is_cleaned_is_read_from_the_oldest_offset(tmp_path: Path) -> None:
    """R16: however good the directory is."""
    _stood_at(tmp_path, 4)
    assert restored(tmp_path, _log_of(0, 5), CLEANED) == (RestoreKind.FULL, 0, 5)


@pytest.mark.parametrize(("position", "oldest", "newest"), [(5, 0, 10), (21, 0, 10), (5, 10, 20)])
def test_a_store_in_memory_is_read_from_oldest_to_newest(
    tmp_path: Path, position: int, oldest: int, newest: int
) -> None:
    """R17, R18, R19: to the head in each case: what is committed is never trimmed.

    R20, R21: no age, and no missing checkpoint, changes that.
    """
    _stood_at(tmp_path, position)
    log = _log_of(oldest, newest)
    log.now_ms += 10_000_000
    assert restored(tmp_path, log, IN_MEMORY) == (RestoreKind.FULL, oldest, newest)


def _damaged(folder: Path) -> None:
    """OFFSET has another text than its checksum says."""
    file = directory_of(folder) / offset_file.OFFSET_V2_FILE
    file.write_bytes(file.read_bytes()[:-1] + b"x")


def _without_offset(folder: Path) -> None:
    for name in (offset_file.OFFSET_FILE, offset_file.OFFSET_V2_FILE):
        (directory_of(folder) / name).unlink()


@pytest.mark.parametrize("spoil", [_damaged, _without_offset])
def test_a_damaged_directory_is_restored_from_the_start(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    """R22, R23: one without OFFSET, and one that is invalid: emptied, oldest to newest."""
    _stood_at(tmp_path, 5)
    spoil(tmp_path)
    assert restored(tmp_path, _log_of(0, 5)) == (RestoreKind.FULL, 0, 5)


@pytest.mark.parametrize(("position", "newest"), [(4, 5), (3, 5), (5, 10)])
def test_a_good_directory_is_kept_and_its_tail_read(
    tmp_path: Path, position: int, newest: int
) -> None:
    """R24, R25, R26: there is one directory; it is kept, and what follows its position is read."""
    _stood_at(tmp_path, position)
    assert restored(tmp_path, _log_of(0, newest)) == (RestoreKind.TAIL, position + 1, newest)


def test_a_directory_at_the_head_is_kept_and_nothing_is_read(tmp_path: Path) -> None:
    """R27, R29: also where the changelog has one record only, the oldest, which it holds."""
    _stood_at(tmp_path, 5)
    assert restored(tmp_path, _log_of(0, 5)) == (RestoreKind.NONE, 6, 5)
    log = _log_of(5, 5)
    storage, result = opened(tmp_path, log)
    assert result.kind is RestoreKind.NONE
    storage.close()


def test_an_empty_changelog_leaves_an_empty_store(tmp_path: Path) -> None:
    """R28: nothing is read; a directory that says otherwise is of something else."""
    log = Log()
    _, result = opened(tmp_path / "new", log)
    assert result == NOTHING
    _stood_at(tmp_path, 5)
    storage, result = opened(tmp_path, log)
    assert (result.kind, result.refusal) == (RestoreKind.NONE, "ahead")
    assert list(storage.overlay("s", TASK).scan()) == []
    storage.close()


@pytest.mark.parametrize(
    ("position", "oldest", "newest"), [(5, 11, 20), (21, 0, 10)], ids=["before", "beyond"]
)
def test_a_position_outside_the_changelog_means_a_full_restore(
    tmp_path: Path, position: int, oldest: int, newest: int
) -> None:
    """R30: emptied, oldest to newest."""
    _stood_at(tmp_path, position)
    assert restored(tmp_path, _log_of(oldest, newest)) == (RestoreKind.FULL, oldest, newest)


def test_a_restore_ends_at_the_head_of_its_beginning(tmp_path: Path) -> None:
    """R31: it reads from behind the position to the head; what comes later is not part of it."""
    _stood_at(tmp_path, 15)
    log = _log_of(0, 20)
    plans = log.plans
    storage, result = opened(tmp_path, log)
    assert (plans[0].start, plans[0].head) == (16, 21)
    assert (result.from_offset, result.to_offset, result.records) == (16, 20, 5)
    storage.close()


def test_changelog_partitions_are_read_as_they_were_written() -> None:
    """R37: and a task whose record is deleted has none, unless the job's own record has it."""
    stream = InMemoryCoordinatorStream()
    manager = ChangelogPartitionManager(stream)
    first, second = TaskName("Partition 0"), TaskName("Partition 1")
    manager.write({first: 0, second: 1})
    stream.catch_up()
    assert manager.read() == {first: 0, second: 1}
    stream.write([tombstone(MessageType.SET_CHANGELOG, second)])
    stream.catch_up()
    assert manager.read() == {first: 0, second: 1}
    stream.write([tombstone(MessageType.SET_STATE_FACT, "partitions 0")])
    stream.catch_up()
    assert manager.read() == {first: 0}
