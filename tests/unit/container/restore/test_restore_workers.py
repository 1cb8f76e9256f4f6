"""What becomes of a restore by how its worker ends; the workers here are small programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from homeport.config.config import Config
from homeport.config.errors import StoreError, UnavailableError
from homeport.container.host.disk_space import DiskFullError
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.progress.restore_schedule import WorkerLimits
from homeport.container.restore import restore_workers
from homeport.container.restore.restore_workers import RestoreWorkers, WorkerStoreError


class Restore:
    """Stands for a ``StoreRestore``; keeps the reports it receives."""

    def __init__(self, program: str, again: Sequence[str] = ()) -> None:
        self.programs = [program, *again]
        self.stated: list[Any] = []
        self.store = self.directory = self
        self.name = "s/Partition 0"
        self.lock_descriptor = sys.__stderr__.fileno() if sys.__stderr__ else 2

    def read(self, records: int, size: int, last: int) -> None:
        """Keeps it."""
        self.stated.append((records, size, last))

    def flushed_elsewhere(self, position: int) -> None:
        """Keeps it."""
        self.stated.append(position)

    def merging(self, files: int) -> None:
        """Keeps it."""
        self.stated.append(("merging", files))

    def again_from_nothing(self, why: StoreError) -> bool:
        """Whether there is another program."""
        self.stated.append(str(why))
        del self.programs[0]
        return bool(self.programs)


GOOD = """
import json
for fact in (
    {"records": 3, "bytes": 30, "last": 7},
    {"flushed": 7},
    {"merging": 9},
    {"peak_mb": 50},
):
    print(json.dumps(fact), flush=True)
"""
TOLD = [(3, 30, 7), 7, ("merging", 9)]


def _error(kind: str) -> str:
    return f"import json; print(json.dumps({{'error': '{kind}', 'text': 'the line'}})); exit(1)"


@pytest.fixture(name="run")
def _run(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a function of two
    monkeypatch.setattr(
        RestoreWorkers, "_brief_of", lambda _, restore: {"program": restore.programs[0]}
    )
    runner = "import json, sys; exec(json.load(sys.stdin)['program'])"
    monkeypatch.setattr(restore_workers, "COMMAND", [sys.executable, "-c", runner])
    monkeypatch.setattr(restore_workers, "GRACE_S", 0.2)

    def run(restores: Sequence[Any], pause: Any = lambda _: None, workers: int = 2) -> list[int]:  # noqa: ANN401 - stand-ins
        found = RestoreWorkers(Config({}), WorkerLimits(workers, 300), 2, pause)
        found.run(restores)
        return found.peak_mb

    return run


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_reports_of_workers_are_passed_on(run: Any, workers: int) -> None:  # noqa: ANN401 - as above
    """Of each, in its order; however many run at once, all are done."""
    restores = [Restore(GOOD) for _ in range(4)]
    assert run(restores, workers=workers) == [50] * 4
    assert [r.stated for r in restores] == [TOLD] * 4


@pytest.mark.parametrize(
    ("program", "kind", "line"),
    [
        (_error("DiskFullError"), DiskFullError, "the line"),
        (_error("UnavailableError"), UnavailableError, "the line"),
        (_error("StoreError"), WorkerStoreError, "the line"),
        ("exit(3)", StoreError, "s/Partition 0 ended with exit code 3, for a cause logged above"),
        ("import os; os.kill(os.getpid(), 9)", StoreError, "was killed, by hand or for want of"),
        ("import os; os.kill(os.getpid(), 11)", StoreError, "was ended by signal 11"),
        ("exit(143)", StoreError, "s/Partition 0 was ended by SIGTERM"),
    ],
)
def test_the_end_of_a_worker_has_one_cause(
    run: Any,  # noqa: ANN401 - as above
    program: str,
    kind: type[Exception],
    line: str,
) -> None:
    """One line; a worker beside it is ended in order and heard to its end."""
    beside = Restore(
        "import signal, sys, time\n"
        "def stop(*_):\n"
        "    print('{\"flushed\": 5}', flush=True)\n"
        "    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "print('{\"flushed\": 4}', flush=True)\n"
        "time.sleep(60)\n"
    )
    failing = Restore("import time; time.sleep(0.5)\n" + program)
    with pytest.raises(kind, match=line) as caught:
        run([beside, failing])
    assert "\n" not in str(caught.value)
    assert beside.stated == [4, 5]


def test_a_damaged_store_is_read_again_alone(run: Any) -> None:  # noqa: ANN401 - as above
    """Once from nothing; its neighbour is not disturbed."""
    damaged, beside = Restore(_error("StoreError"), [GOOD]), Restore(GOOD)
    assert run([damaged, beside]) == [50, 50]
    assert (damaged.stated, beside.stated) == (["the line", *TOLD], TOLD)


def test_a_worker_that_does_not_end_is_killed(run: Any) -> None:  # noqa: ANN401 - as above
    """A container that is ordered to stop waits a while, not for ever."""
    stubborn = Restore(
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('{\"flushed\": 4}', flush=True)\n"
        "time.sleep(60)\n"
    )

    def pause(_seconds: float) -> None:
        if stubborn.stated:
            raise StopRequestedError("ordered to stop")

    with pytest.raises(StopRequestedError):
        run([stubborn], pause)
    assert stubborn.stated == [4]
