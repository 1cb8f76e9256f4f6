"""The history file: one line per event, in a file of the process's own."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from homeport.job_coordinator.history.writer import HistoryWriter, history_directory


def _lines(directory: Path) -> list[dict[str, object]]:
    (path,) = directory.iterdir()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_an_event_is_one_line_with_process_place_and_time(tmp_path: Path) -> None:
    """The agreed fields come first and cannot be overwritten; the event's own follow."""
    writer = HistoryWriter(tmp_path / "deep" / ".history", "container", "nm1")
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
    HistoryWriter(tmp_path, "driver", "nm1").event("decision")
    HistoryWriter(tmp_path, "launcher", "nm1").event("decision")
    assert len(list(tmp_path.iterdir())) == 2
    writer = HistoryWriter(tmp_path, "keeper", "nm1")
    writer.event("decision")
    writer._pid = -2
    writer.event("decision")
    assert len(list(tmp_path.iterdir())) == 4


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    """Every line of every thread is whole."""
    writer = HistoryWriter(tmp_path, "driver", "nm1")

    def work(number: int) -> None:
        for _ in range(200):
            writer.event("decision", str(number), text="x" * 500)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(_lines(tmp_path)) == 800


def test_a_history_that_cannot_be_written_stops_no_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once in the log, and that is all."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    writer = HistoryWriter(tmp_path / "file" / "below", "driver", "nm1")
    writer.event("decision")
    writer.event("decision")
    assert caplog.text.count("cannot be written") == 1


@pytest.mark.parametrize("ends", [False, True])
def test_unwritten_events_are_written_first_later(tmp_path: Path, *, ends: bool) -> None:
    """A disk that was full for a while leaves no gap: with the next event, or at the end."""
    place = tmp_path / "place"
    place.write_text("", encoding="utf-8")
    writer = HistoryWriter(place / "below", "driver", "nm1")
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
    writer = HistoryWriter(tmp_path, "driver", "nm1")
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


def test_only_so_many_lines_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that stays away does not fill the memory instead."""
    monkeypatch.setattr("homeport.job_coordinator.history.writer._WAITING_LINES", 2)
    (tmp_path / "file").write_text("", encoding="utf-8")
    writer = HistoryWriter(tmp_path / "file" / "below", "driver", "nm1")
    for number in range(4):
        writer.event("decision", str(number))
    (tmp_path / "file").unlink()
    writer.close()
    assert [line["processor_id"] for line in _lines(tmp_path / "file" / "below")] == ["0", "1"]


def test_a_forked_child_leaves_its_parents_lines_to_it(tmp_path: Path) -> None:
    """Each line is written once."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    writer = HistoryWriter(tmp_path / "file" / "below", "driver", "nm1")
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
