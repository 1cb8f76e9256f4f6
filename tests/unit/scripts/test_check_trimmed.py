"""The outside judge of a history that begins later: what is left is judged, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from homeport.job_coordinator.history.writer import HistoryWriter
from tests.unit.scripts.test_check_history import BOOTED_MS, INPUT, TASK, History

OFFSETS = "input offsets never go back and never skip"
WHOLE = "history lines are whole"
STARTED_NS = (BOOTED_MS + 100) * 1_000_000


class Segments:
    """The transactions of one incarnation on its host, ten records each, in segments of two."""

    def __init__(self, history: History, key: tuple[str, int], host: str = "nm1") -> None:
        self.folder = history.folder / host / "job-1" / ".history"
        self.key, self.host = key, host
        # The process is the one that wrote the steps of its start.
        pid = key[1] * 10 + int(key[0][0])
        self.own = {"host": host, "pid": pid, "role": "container"}
        self.own |= {"processor_id": key[0], "epoch": key[1]}
        self.lines = 0

    def write(self, at: int, *firsts: int) -> Path:
        """A segment with these transactions, 10 ms apart; its first line alone has its process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path, written = self.path(self.lines), list[str]()
        for number, first in enumerate(firsts):
            spans: dict[str, Any] = {"offsets": {TASK: {INPUT: [first, first + 9]}}}
            for name, after, more in (("ending", 0, spans), ("committed", 1, {})):
                boot_ms = at + 10 * number + after
                line = {"ts_ms": BOOTED_MS + boot_ms, "boot_ms": boot_ms, **more}
                line |= {"event": f"transaction-{name}"} | ({} if written else self.own)
                written.append(json.dumps(line) + "\n")
        path.write_text("".join(written), encoding="utf-8")
        self.lines += len(written)
        return path

    def path(self, line: int) -> Path:
        """The segment that begins with that line."""
        stem = f"container-{self.host}-{self.key[1]}-{STARTED_NS}"
        return self.folder / f"{stem}-transactions-{line:010}.jsonl"

    def trim(self, until: int, *paths: Path) -> None:
        """These are gone, as the writer removes them; until the time of their last line."""
        (self.folder / f"trimmed-transactions-{BOOTED_MS + until}").touch()
        for path in paths:
            path.unlink()

    def lose(self, until: int, of: str = "") -> None:
        """The mark of a process whose disk was full; ``of``: of another process."""
        series = self.path(0).name.removesuffix("-0000000000.jsonl")
        (self.folder / f"lost-{BOOTED_MS + until}-{of}{series}").touch()


@pytest.fixture
def history(tmp_path: Path) -> History:
    """One incarnation on nm1, which started at 100."""
    history = History(tmp_path)
    history.start(100, ("0", 1))
    return history


@pytest.fixture
def own(history: History) -> Segments:
    """The transactions of that incarnation."""
    return Segments(history, ("0", 1))


def successor(history: History) -> Segments:
    """The transactions of the next incarnation, which starts on nm2 at 500."""
    history.stop(400, ("0", 1))
    history.follow(500, 2, "nm2")
    return Segments(history, ("0", 2), "nm2")


def test_a_history_that_begins_later_is_no_fault(history: History, own: Segments) -> None:
    """The output says since when it is there, by host and by task, and what that leaves out."""
    old = own.write(200, 0, 10)
    own.write(300, 20, 30)
    own.trim(211, old)
    assert history.broken() == []
    for words in (
        "of nm1 there are only transactions after 2023-11-14T22:13:20.211Z",
        f"{TASK} / {INPUT} is judged from offset 20, 2023-11-14T22:13:20.301Z",
        f"in part {OFFSETS}",
        "held    epochs grow",
        "green: every rule held; 8 of them are judged by what is left",
    ):
        assert words in history.said


@pytest.mark.parametrize(("first", "word"), [(41, "skipped"), (35, "went back")])
def test_a_fault_in_what_is_left_is_found(
    history: History, own: Segments, first: int, word: str
) -> None:
    """Within one process, and from one to its successor on another host."""
    old = own.write(200, 0, 10)
    own.write(300, 20, 30)
    own.trim(211, old)
    successor(history).write(600, first)
    assert history.broken() == [OFFSETS]
    assert word in history.said
    own.write(320, first)
    assert history.broken()


def test_what_another_host_has_lost_excuses_nothing_in_one_process(
    history: History, own: Segments
) -> None:
    """Its own lines are there without a gap."""
    own.write(300, 20, 31)
    history.event(880, "launcher", "checked-in", ("9", 1), "nm2")
    other = Segments(history, ("9", 1), "nm2")
    other.trim(900, other.write(890, 0))
    assert history.broken() == [OFFSETS]
    assert "of nm2 there are only transactions after" in history.said


@pytest.mark.parametrize(("first", "faults"), [(100, 0), (39, 1)])
def test_what_went_on_meanwhile_may_be_gone_and_nothing_goes_back(
    history: History, own: Segments, first: int, faults: int
) -> None:
    """The predecessor's last transactions are there, the successor's first ones are not."""
    own.write(300, 20, 30)
    later = successor(history)
    old = later.write(600, 40, 50)
    later.write(700, first)
    later.trim(611, old)
    assert history.broken() == [OFFSETS] * faults


def test_a_whole_container_that_is_gone_is_no_skip(history: History, own: Segments) -> None:
    """Nothing but its host's mark says that it may have moved the input."""
    own.write(300, 20, 30)
    gone = successor(history)
    gone.trim(611, gone.write(600, 40, 50))
    history.stop(650, ("0", 2), "nm2")
    history.follow(700, 3)
    Segments(history, ("0", 3)).write(800, 60)
    assert history.broken() == []
    gone.folder.joinpath(f"trimmed-transactions-{BOOTED_MS + 611}").unlink()
    assert history.broken() == [OFFSETS]


@pytest.mark.parametrize(
    ("first", "is_marked", "rules"),
    [(40, True, []), (40, False, [OFFSETS]), (10, True, [OFFSETS])],
    ids=["marked", "not marked", "goes back"],
)
def test_lines_that_a_full_disk_took_accuse_no_job(
    history: History, own: Segments, first: int, rules: list[str], *, is_marked: bool
) -> None:
    """The next container goes on behind transactions that no file has; the mark shows it.

    What goes back is found all the same: no lost line explains that.
    """
    own.write(200, 0, 10)
    successor(history).write(600, first)
    if is_marked:
        own.lose(390)
    assert history.broken() == rules
    assert (f"in part {OFFSETS}" in history.said) == (is_marked and not rules)


def test_a_gap_in_the_files_of_a_process_that_says_so_is_no_fault(
    history: History, own: Segments
) -> None:
    """Its disk was full for so long that it left lines out; of another one a gap is a fault."""
    own.write(200, 0, 10)
    own.lines += 4
    own.write(300, 60)
    assert history.broken()
    assert "lines 5 to 8 are missing" in history.said
    own.lose(290, "other-")
    assert history.broken()
    own.lose(290)
    assert history.broken() == []


@pytest.mark.parametrize("lost", [0, 1])
def test_lines_that_nothing_has_trimmed_are_missed(
    history: History, own: Segments, lost: int
) -> None:
    """At the begin of a series without a mark, or in the middle of one; it alone is the fault."""
    paths = [own.write(200 + 100 * n, 20 * n, 20 * n + 10) for n in range(3)]
    paths[lost].unlink()
    assert history.broken() == [WHOLE]
    missing = f"lines {4 * lost + 1} to {4 * lost + 4} are missing, and were not trimmed"
    assert missing in history.said


def test_a_mark_from_before_a_process_explains_nothing_of_it(
    history: History, own: Segments
) -> None:
    """What it has lost was written later."""
    own.trim(50, own.write(200, 0, 10))
    own.write(300, 20, 30)
    assert history.broken() == [WHOLE]


# --------------------------------------------- other events than transactions are gone, too


def trim_events(history: History, until: int, host: str = "nm1") -> None:
    """All events of the host up to then are gone."""
    folder = history.folder / host / "job-1" / ".history"
    for path, lines in history.lines.items():
        if path.parent == folder:
            lines[:] = [line for line in lines if json.loads(line)["boot_ms"] > until]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"trimmed-events-{BOOTED_MS + until}").touch()


@pytest.mark.parametrize("until", range(96, 840, 9))
def test_wherever_the_events_begin_a_sound_run_is_green(history: History, until: int) -> None:
    """Of a run with a failover, a zombie and a change of the JobModel; all on one host."""
    moved: dict[str, Any] = {"changed": {"0": {"after": {TASK: [0, []]}}}}
    history.transaction(200, ("0", 1), (0, 9))
    history.event(240, "driver", "revoked", ("0", 1), pid=1)
    history.follow(250, 2)
    history.transaction(300, ("0", 2), (10, 19))
    history.event(350, "driver", "model-change", ("0", 1), pid=1, version=2, **moved)
    history.event(360, "driver", "stop-ordered", ("0", 2), pid=1)
    history.stop(400, ("0", 2))
    history.event(401, "driver", "state-reset", ("0", 1), pid=1, submission=2)
    history.follow(500, 3)
    recovered: dict[str, Any] = {"phases_ms": {"start": 10}, "total_ms": 10, "pid": 1}
    history.event(510, "driver", "recovered", ("0", 3), **recovered)
    # A driver repeats the permit of a launcher that it adopts.
    history.event(552, "driver", "model-change", ("0", 1), pid=1, version=3, **moved)
    history.event(560, "driver", "permit-granted", ("0", 3), resource="c3", pid=2, on_host="nm1")
    history.transaction(600, ("0", 3), (0, 9))
    history.event(640, "driver", "stop-ordered", ("0", 3), pid=2)
    history.stop(660, ("0", 3))
    history.follow(700, 4)
    history.transaction(780, ("0", 1), (10, 19), is_known=False)
    history.stop(800, ("0", 1))
    trim_events(history, until)
    assert history.broken() == []


def test_a_reset_that_is_gone_may_have_taken_the_input_back(history: History) -> None:
    """The transactions before and after it are there."""
    Segments(history, ("0", 1)).write(200, 0, 10)
    history.stop(400, ("0", 1))
    history.event(420, "driver", "state-reset", ("0", 1), pid=1, submission=2)
    history.follow(500, 2)
    Segments(history, ("0", 2)).write(600, 0)
    assert history.broken() == []
    trim_events(history, 450)
    assert history.broken() == []


def test_a_change_of_tasks_that_is_gone_may_be_the_last(history: History) -> None:
    """An earlier driver's is there, on another host."""
    for at, host, task in ((420, "nm1", "Partition 1"), (440, "nm2", TASK)):
        moved: dict[str, Any] = {"changed": {"0": {"after": {task: [0, []]}}}, "version": at}
        history.event(at, "driver", "model-change", ("0", 1), host, pid=1, **moved)
    history.stop(450, ("0", 1))
    for epoch in (2, 3):
        history.start(400 + 100 * epoch, ("0", epoch), fences=[("0", epoch - 1)])
        permit: dict[str, Any] = {"resource": f"c{epoch}", "pid": 1, "model_version": 440}
        at = 400 + 100 * epoch
        history.event(at, "driver", "permit-granted", ("0", epoch), on_host="nm1", **permit)
        history.stop(450 + 100 * epoch, ("0", epoch))
    assert history.broken() == []
    trim_events(history, 445, "nm2")
    assert history.broken() == []


def test_faults_after_the_first_permit_that_is_left_are_found(history: History) -> None:
    """Epoch 3 neither waits for epoch 2 nor fences it, and its steps are amiss."""
    history.stop(400, ("0", 1))
    history.follow(500, 2)
    history.start(650, ("0", 3), without="child-started", host_said="nm3")
    history.stop(900, ("0", 2))
    whole = history.broken()
    assert len(whole) == 4
    trim_events(history, 450)
    assert history.broken() == whole


def test_a_history_that_its_writer_trims_is_judged(history: History) -> None:
    """The product's own files: short lines, segments and marks; and then one fault in them."""
    history.lines.clear()
    writer = HistoryWriter(history.folder / "nm1" / "job-1" / ".history", "container", "nm1", 1)
    for name in ("fenced", "started"):
        writer.event(name, "0", 1, tasks=[TASK])
    for first in [*range(0, 60_000, 10), 60_010]:
        spans = {TASK: {INPUT: [first, first + 9]}}
        writer.event("transaction-ending", "0", 1, offsets=spans)
        writer.event("transaction-committed", "0", 1)
        if first == 59_990:
            assert history.broken() == []
            assert "only transactions after" in history.said
    assert history.broken() == [OFFSETS]
