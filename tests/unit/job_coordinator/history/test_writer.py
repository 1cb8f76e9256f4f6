"""The history file: one line per event, in a file of the process's own."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from check_history.reading import values_in

from homeport.job_coordinator.history import segments
from homeport.job_coordinator.history.segments import (
    EVENTS,
    TRANSACTIONS,
    Segment,
    kind_bytes,
    segment_bytes,
    superfluous,
)
from homeport.job_coordinator.history.writer import HistoryWriter, history_directory


def _lines(directory: Path) -> list[dict[str, object]]:
    (path,) = directory.iterdir()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_an_event_is_one_line_with_process_place_and_time(tmp_path: Path) -> None:
    """The agreed fields come first and cannot be overwritten; the event's own follow."""
    writer = HistoryWriter(tmp_path / "deep" / ".history", "container", "nm1", 64)
    writer.event("restore-finished", "0", 4, kind="tail", to=None, host="other", path=Path("x"))
    writer.event("stop-ordered")
    writer.close()
    first, second = _lines(tmp_path / "deep" / ".history")
    assert list(first)[:8] == [
        "ts_ms",
        "boot_ms",
        "host",
        "pid",
        "role",
        "event",
        "processor_id",
        "epoch",
    ]
    assert (first["host"], first["pid"], first["role"]) == ("nm1", os.getpid(), "container")
    assert (first["kind"], first["to"], first["path"]) == ("tail", None, "x")
    assert (second["processor_id"], second["epoch"]) == (None, None)
    assert first["boot_ms"] <= second["boot_ms"]  # type: ignore[operator] # JSON numbers


def test_processes_have_files_of_their_own(tmp_path: Path) -> None:
    """Two writers in one directory do not share a file, nor does one with its forked child."""
    HistoryWriter(tmp_path, "driver", "nm1", 64).event("decision")
    HistoryWriter(tmp_path, "launcher", "nm1", 64).event("decision")
    assert len(list(tmp_path.iterdir())) == 2
    writer = HistoryWriter(tmp_path, "keeper", "nm1", 64)
    writer.event("decision")
    writer._pid = -2
    writer.event("decision")
    assert len(list(tmp_path.iterdir())) == 4


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    """Every line of every thread is whole, also where a file is full."""
    writer = HistoryWriter(tmp_path, "driver", "nm1", 512)

    def work(number: int) -> None:
        for _ in range(200):
            writer.event("decision", str(number), text="x" * 500)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
    assert len(texts) > 1
    assert len([json.loads(line) for text in texts for line in text.splitlines()]) == 800


@pytest.mark.parametrize("ends", [False, True])
def test_unwritten_events_are_written_first_later(tmp_path: Path, *, ends: bool) -> None:
    """A disk that was full for a while leaves no gap: with the next event, or at the end."""
    place = tmp_path / "place"
    place.write_text("", encoding="utf-8")
    writer = HistoryWriter(place / "below", "driver", "nm1", 64)
    names = ["started", "decision"]
    for name in names:
        writer.event(name)
    place.unlink()
    if not ends:
        writer.event("stopped")
        names.append("stopped")
    else:
        writer.close()
    assert [line["event"] for line in _lines(place / "below")] == names


def test_the_rest_of_a_half_written_line_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is torn by the last bytes of a disk."""
    writer = HistoryWriter(tmp_path, "driver", "nm1", 64)
    writer.event("started")
    real, room = os.write, [7]

    def write(file: int, data: bytes) -> int:
        if not room:
            return real(file, data)
        if room[0] == 0:
            raise OSError(errno.ENOSPC, "no room")
        left, room[0] = room[0], 0
        return real(file, data[:left])

    monkeypatch.setattr("homeport.job_coordinator.history.writer.os.write", write)
    writer.event("decision")
    room.clear()
    writer.event("stopped")
    assert [line["event"] for line in _lines(tmp_path)] == ["started", "decision", "stopped"]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A disk that takes no line while the list has a word."""
    full, real = list[str](), os.write

    def write(file: int, data: bytes) -> int:
        if full:
            raise OSError(errno.ENOSPC, "no room")
        return real(file, data)

    monkeypatch.setattr("homeport.job_coordinator.history.writer.os.write", write)
    return full


def _marks(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("lost-*"))


def test_a_process_that_cannot_write_leaves_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: list[str]
) -> None:
    """It is there as soon as a line waits, and reaches beyond the last one: a kill may follow."""
    now_ms = [1_000_000]
    monkeypatch.setattr("homeport.job_coordinator.history.writer.wall_ms", lambda: now_ms[0])
    writer = HistoryWriter(tmp_path, "container", "nm1", 64)
    writer.event("started", "0", 1)
    assert _marks(tmp_path) == []
    disk.append("full")
    for _ in range(3):
        writer.event("transaction-ending", "0", 1)
        now_ms[0] += 4_000
    (mark,) = _marks(tmp_path)
    (file,) = tmp_path.glob("*-transactions-0000000000.jsonl")
    series = file.name.removesuffix("-0000000000.jsonl")
    assert mark == f"lost-1013000-{series}"


def test_a_mark_that_is_gone_or_cannot_be_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: list[str]
) -> None:
    """The next line that waits tries it."""
    now_ms = [1_000_000]
    monkeypatch.setattr("homeport.job_coordinator.history.writer.wall_ms", lambda: now_ms[0])
    place = tmp_path / "place"
    place.write_text("", encoding="utf-8")
    writer = HistoryWriter(place, "container", "nm1", 64)
    disk.append("full")
    writer.event("started", "0", 1)
    place.unlink()
    writer.event("started", "0", 1)
    (mark,) = _marks(place)
    (place / mark).unlink()
    now_ms[0] += 6_000
    writer.event("started", "0", 1)
    assert [name.split("-")[1] for name in _marks(place)] == ["1011000"]


def test_a_mark_goes_when_all_is_written_after_all(tmp_path: Path, disk: list[str]) -> None:
    """Nothing is lost: the history is judged whole."""
    writer = HistoryWriter(tmp_path, "container", "nm1", 64)
    disk.append("full")
    writer.event("started", "0", 1)
    assert len(_marks(tmp_path)) == 1
    disk.clear()
    writer.event("stopped", "0", 1)
    assert _marks(tmp_path) == []
    disk.append("full")
    writer.event("stopped", "0", 1)
    assert len(_marks(tmp_path)) == 1


def test_a_mark_stays_where_lines_were_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: list[str]
) -> None:
    """Those that were kept are written; the others are in no file."""
    monkeypatch.setattr("homeport.job_coordinator.history.writer._WAITING_LINES", 2)
    writer = HistoryWriter(tmp_path, "container", "nm1", 64)
    disk.append("full")
    for _ in range(3):
        writer.event("decision")
    disk.clear()
    writer.close()
    assert len(_marks(tmp_path)) == 1


def test_a_mark_goes_with_what_is_trimmed(tmp_path: Path) -> None:
    """Nothing is kept of that time; a later mark stays."""
    (tmp_path / "trimmed-events-500").touch()
    for name in ("500-p-events", "501-p-events", "1-p-transactions"):
        (tmp_path / f"lost-{name}").touch()
    segments.make_room(tmp_path, segments.EVENTS, 64)
    assert _marks(tmp_path) == ["lost-1-p-transactions", "lost-501-p-events"]


def test_a_history_that_cannot_be_written_stops_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once in the log; only so many lines are kept, which would fill the memory else."""
    monkeypatch.setattr("homeport.job_coordinator.history.writer._WAITING_LINES", 2)
    (tmp_path / "file").write_text("", encoding="utf-8")
    writer = HistoryWriter(tmp_path / "file" / "below", "driver", "nm1", 64)
    for number in range(4):
        writer.event("decision", str(number))
    assert caplog.text.count("cannot be written") == 1
    (tmp_path / "file").unlink()
    writer.close()
    assert [line["processor_id"] for line in _lines(tmp_path / "file" / "below")] == ["0", "1"]


def test_a_forked_child_leaves_its_parents_lines_to_it(tmp_path: Path) -> None:
    """Each line is written once."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    writer = HistoryWriter(tmp_path / "file" / "below", "driver", "nm1", 64)
    writer.event("parent")
    (tmp_path / "file").unlink()
    child = os.fork()
    if child == 0:
        writer.event("child")
        os._exit(0)
    os.waitpid(child, 0)
    writer.close()
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "file" / "below").iterdir()]
    assert sorted(json.loads(text)["event"] for text in texts) == ["child", "parent"]


def test_the_directory_is_configured_or_beside_the_state() -> None:
    """NodeManagers delete their log folders: by default history stands among the state."""
    assert history_directory("h", "base", "j-1") == Path("h")
    assert history_directory(None, "base", "j-1") == Path("base/j-1/.history")


def _commits(writer: HistoryWriter, numbers: range) -> None:
    for n in numbers:
        writer.event("transaction-ending", "0", 4, offsets={"Partition 0": {"kafka.in.0": [n, n]}})
        writer.event("transaction-committed", "0", 4)


def _numbers(directory: Path) -> list[int]:
    """Which transactions are there, each with its commit."""
    lines = [line for path in sorted(directory.glob("*.jsonl")) for line in values_in(path)]
    ends = [x["offsets"]["Partition 0"]["kafka.in.0"][0] for x in lines if "offsets" in x]
    commits = sum(x["event"] == "transaction-committed" for x in lines)
    assert commits == len(ends)
    return ends


def _bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.jsonl"))


def test_only_the_first_line_of_transactions_has_what_is_the_same_in_all(tmp_path: Path) -> None:
    """Another processor or epoch is stated again; a reader gets whole lines."""
    writer = HistoryWriter(tmp_path, "container", "nm1", 64)
    _commits(writer, range(2))
    writer.event("commit", "0", 5)
    (path,) = tmp_path.iterdir()
    first, *short, other = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert (first["host"], first["epoch"], other["epoch"]) == ("nm1", 4, 5)
    assert {key for line in short for key in line} == {"ts_ms", "boot_ms", "event", "offsets"}
    assert [(line["host"], line["epoch"]) for line in values_in(path)] == [
        *[("nm1", 4)] * 4,
        ("nm1", 5),
    ]


def test_a_history_never_has_more_than_its_bytes(tmp_path: Path) -> None:
    """The newest transactions are left, without a gap, and each is whole in one file."""
    writer = HistoryWriter(tmp_path, "container", "nm1", 1)
    writer.event("started", "0", 4)
    for begin in range(0, 6_000, 100):
        _commits(writer, range(begin, begin + 100))
        assert _bytes(tmp_path) <= 1 << 20
    kept = _numbers(tmp_path)
    assert kept == list(range(kept[0], 6_000))
    assert _bytes(tmp_path) > 700_000
    assert "started" in (tmp_path / min(p.name for p in tmp_path.glob("*-events-*"))).read_text()
    (mark,) = tmp_path.glob("trimmed-*")
    assert mark.name.startswith("trimmed-transactions-")


def test_processes_that_ended_make_room_and_those_that_write_do_not(tmp_path: Path) -> None:
    """However often a container starts; what a process has open is not taken from it."""
    lives = HistoryWriter(tmp_path, "driver", "nm1", 1)
    lives.event("permit-granted", "0", 1)
    for epoch in range(80):
        writer = HistoryWriter(tmp_path, "container", "nm1", 1)
        writer.event("started", "0", epoch, text="x" * 4_000)
        writer.close()
    assert _bytes(tmp_path) <= 1 << 18
    assert len(list(tmp_path.glob("trimmed-events-*"))) == 1
    assert not list(tmp_path.glob("trimmed-transactions-*"))
    (path,) = tmp_path.glob("driver-*")
    lives.event("permit-granted", "0", 2)
    assert len(values_in(path)) == 2


def _nfs(file: int, operation: int) -> None:
    """As NFS has it: no lock of a directory, and none beyond what the file is open for."""
    access = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE
    needed = {os.O_RDWR} if operation & fcntl.LOCK_EX else {os.O_RDWR, os.O_RDONLY}
    if access not in needed:
        raise OSError(errno.EBADF, "not open for that")
    _FLOCK(file, operation)


def _no_locks(_file: int, _operation: int) -> None:
    raise OSError(errno.ENOLCK, "no locks available")


_FLOCK = fcntl.flock


@pytest.mark.parametrize(("flock", "ended"), [(_nfs, 0), (_no_locks, 1)])
def test_what_is_open_stays_on_a_file_system_with_few_locks_or_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    flock: Callable[[int, int], None],
    ended: int,
) -> None:
    """Without locks the last file of an ended process stays too, and the log says so once."""
    monkeypatch.setattr(fcntl, "flock", flock)
    early = HistoryWriter(tmp_path, "container", "nm1", 1)
    _commits(early, range(2))
    early.close()
    lives = HistoryWriter(tmp_path, "launcher", "nm1", 1)
    _commits(lives, range(2))
    writer = HistoryWriter(tmp_path, "driver", "nm1", 1)
    for begin in range(0, 6_000, 100):
        _commits(writer, range(begin, begin + 100))
    _commits(lives, range(2, 4))
    (path,) = tmp_path.glob("launcher-*")
    assert len(values_in(path)) == 8
    assert len(list(tmp_path.glob("container-*"))) == ended
    assert _bytes(tmp_path) <= 1 << 20
    assert len(list(tmp_path.glob("trimmed-*"))) == 1
    assert caplog.text.count("gives no locks") == ended
    assert "cannot be written" not in caplog.text


def test_a_mark_of_another_process_may_go_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest mark becomes the next one; where it is gone, that one is made."""
    for until_ms in (1, 2):
        (tmp_path / f"trimmed-events-{until_ms}").touch()
    node = (tmp_path / "trimmed-events-2").stat().st_ino
    segments._mark(tmp_path, "events", 3)
    (mark,) = tmp_path.iterdir()
    assert (mark.name, mark.stat().st_ino) == ("trimmed-events-3", node)
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        path.unlink()
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    segments._mark(tmp_path, "events", 4)
    assert [path.name for path in tmp_path.iterdir()] == ["trimmed-events-4"]


def test_files_of_an_earlier_release_go_first(tmp_path: Path) -> None:
    """They hold both kinds of events, and nothing has trimmed them so far."""
    old = tmp_path / "container-nm1-7-1700000000000000000.jsonl"
    old.write_text(f'{{"ts_ms":17,"text":"{"x" * (1 << 20)}"}}\n', encoding="utf-8")
    HistoryWriter(tmp_path, "container", "nm1", 1).event("started")
    assert not old.exists()
    assert {p.name.rpartition("-")[0] for p in tmp_path.glob("trimmed-*")} == {
        "trimmed-events",
        "trimmed-transactions",
    }


def test_a_crash_between_mark_and_removal_loses_only_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is there before a line is gone; the next process removes what is too much."""
    writer = HistoryWriter(tmp_path, "container", "nm1", 1)
    monkeypatch.setattr(Path, "unlink", _dies)
    with pytest.raises(KeyboardInterrupt):
        _commits(writer, range(6_000))
    monkeypatch.undo()
    before = _numbers(tmp_path)
    (mark,) = tmp_path.glob("trimmed-*")
    assert before[0] == 0
    successor = HistoryWriter(tmp_path, "container", "nm1", 1)
    _commits(successor, range(before[-1] + 1, before[-1] + 20))
    assert _numbers(tmp_path)[0] > 0
    assert [p.name for p in tmp_path.glob("trimmed-*")] == [mark.name]


def _dies(_path: Path, **_options: bool) -> None:
    raise KeyboardInterrupt


def test_lines_that_were_left_out_are_a_gap_between_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number in the second file's name counts them."""
    monkeypatch.setattr("homeport.job_coordinator.history.writer._WAITING_LINES", 2)
    place = tmp_path / "place"
    writer = HistoryWriter(place, "container", "nm1", 64)
    _commits(writer, range(1))
    full = "homeport.job_coordinator.history.writer.os.write"
    with monkeypatch.context() as patch:
        patch.setattr(full, _no_room)
        _commits(writer, range(1, 4))
    _commits(writer, range(4, 5))
    first, second = sorted(place.glob("*.jsonl"))
    assert (len(values_in(first)), len(values_in(second))) == (4, 1)
    assert [path.stem.rpartition("-")[2] for path in (first, second)] == ["0" * 10, "0000000009"]


def _no_room(_file: int, _data: bytes) -> int:
    raise OSError(errno.ENOSPC, "no room")


def test_a_history_among_the_state_is_its_owners_alone(tmp_path: Path) -> None:
    """Folders and segments, those of an earlier release too, whatever the mask."""
    folder = history_directory(None, tmp_path, "j-1")
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "driver-nm1-1-1-events-0000000000.jsonl").write_text("{}\n")
    before = os.umask(0)
    try:
        HistoryWriter(folder, "driver", "nm1", 100).event("one")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (folder, folder.parent)} == {0o700}
    assert [path.stat().st_mode & 0o777 for path in folder.glob("*.jsonl")] == [0o600] * 2


def test_a_configured_history_is_read_by_the_group_that_the_operator_gives_it(
    tmp_path: Path,
) -> None:
    """Mode 2750, as for a shipper of logs: the folder keeps it, and each segment has 0640."""
    tmp_path.chmod(0o2750)
    HistoryWriter(tmp_path, "driver", "nm1", 100).event("one")
    assert tmp_path.stat().st_mode & 0o7777 == 0o2750
    assert [path.stat().st_mode & 0o777 for path in tmp_path.glob("*.jsonl")] == [0o640]
    HistoryWriter(tmp_path / "new", "driver", "nm1", 100).event("one")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_history_in_a_folder_of_others_stops_no_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line, and nothing is written there."""
    folder = history_directory(None, tmp_path, "j-1")
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    HistoryWriter(folder, "driver", "nm1", 100).event("one")
    assert list(folder.iterdir()) == []
    assert "other users can write there (mode 0777)" in caplog.text


def files(*sizes: int, is_open: tuple[int, ...] = ()) -> list[Segment]:
    """Segments named by their place, the oldest last."""
    return [Segment(str(n), size, -n, n in is_open) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "is_open", "gone"),
    [
        ((), (), []),
        ((100, 100, 700), (), []),
        ((100, 100, 701), (), ["2"]),
        ((300, 300, 300, 300), (), ["3"]),
        ((300, 300, 300, 300), (3,), ["2"]),
        ((10, 300, 300, 300), (0,), ["3"]),
        ((0, 900), (0,), ["1"]),
        ((2_000, 2_000), (0, 1), []),
    ],
)
def test_the_oldest_go_until_one_more_fits(
    sizes: tuple[int, ...], is_open: tuple[int, ...], gone: list[str]
) -> None:
    """Of 1,000 bytes, a full one having 100; what is open may grow to that, and stays."""
    assert [s.name for s in superfluous(files(*sizes, is_open=is_open), 1_000, 100)] == gone


def test_there_are_never_too_many_files_to_look_at() -> None:
    """However small they are."""
    most, full = kind_bytes(512, TRANSACTIONS), segment_bytes(512, TRANSACTIONS)
    gone = superfluous(files(*[1] * 5_000), most, full)
    assert 2_900 < len(gone) < 3_100


def test_a_quarter_is_for_what_is_no_transaction() -> None:
    """Both together are what the key says."""
    assert kind_bytes(512, EVENTS) == 128 << 20
    assert kind_bytes(512, TRANSACTIONS) == 384 << 20


@pytest.mark.parametrize(
    ("max_mb", "kind", "expected"),
    [
        (1024, EVENTS, 256 << 10),
        (256, EVENTS, 64 << 10),
        (64, EVENTS, 64 << 10),
        (1, EVENTS, 4 << 10),
        (256, TRANSACTIONS, 3 << 20),
        (1, TRANSACTIONS, 12 << 10),
    ],
)
def test_events_lie_in_smaller_files(max_mb: int, kind: str, expected: int) -> None:
    """Each process has one open; a small one has room for the events of a life."""
    assert segment_bytes(max_mb, kind) == expected


def test_five_hundred_processes_leave_room_for_what_is_past() -> None:
    """With the default size; what they have open counts as full."""
    most, full = kind_bytes(256, EVENTS), segment_bytes(256, EVENTS)
    found = files(*[100] * 500, *[full] * 400, is_open=tuple(range(500)))
    assert superfluous(found, most, full) == []
