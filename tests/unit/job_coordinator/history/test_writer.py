"""The history file: one line per event, in a file of the process's own."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from homeport.job_coordinator.history.writer import HistoryWriter, history_directory


def _lines(directory: Path) -> list[dict[str, object]]:
    (path,) = directory.iterdir()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_an_event_is_one_line_with_who_where_and_when(tmp_path: Path) -> None:
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


def test_a_history_that_cannot_be_written_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once in the log, and that is all."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    writer = HistoryWriter(tmp_path / "file" / "below", "driver", "nm1")
    writer.event("decision")
    writer.event("decision")
    assert caplog.text.count("cannot be written") == 1


def test_the_directory_is_configured_or_beside_the_state() -> None:
    """NodeManagers delete their log folders: by default history stands among the state."""
    assert history_directory("h", "base", "j-1") == Path("h")
    assert history_directory(None, "base", "j-1") == Path("base/j-1/.history")
