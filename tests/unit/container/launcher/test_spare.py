"""When a spare is begun, ended and handed over: real processes, memory and clock by the test."""

from __future__ import annotations

import selectors
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest

from homeport.config.settings.memory_rule import needed_for_spare
from homeport.container.child import process as child_process
from homeport.container.child.process import ChildProcess
from homeport.container.host.lease_memory import SpareKind
from homeport.container.launcher import spare as module
from homeport.container.launcher.spare import Spare
from homeport.job_coordinator.status.shape import SpareReport

MEMORY_MB = 1024
NO_ROOM_MB = 1000
OLD, NEW = Path("/job/__package"), Path("/job/__package-new")


class _Kept:
    """A spare as a launcher keeps it. Units: ms.

    ``used_mb``: what all processes use together; ``counted``: how often it was read.
    """

    def __init__(self, folder: Path) -> None:
        self.now_ms = 1_000_000
        self.used_mb = 0
        self.counted = 0
        self.started: list[ChildProcess] = []
        self.packages: list[Path] = []
        self.selector = selectors.DefaultSelector()
        self.spare = Spare(self._start, self.selector, MEMORY_MB)
        self._folder = folder

    @property
    def last(self) -> ChildProcess:
        return self.started[-1]

    def count(self) -> int:
        self.counted += 1
        return self.used_mb

    def wants(
        self,
        kind: SpareKind | None = SpareKind.PLAIN,
        after_ms: int = 0,
        package: Path | None = OLD,
        *,
        is_near: bool = False,
    ) -> int:
        """The launcher looks after a spare of that kind; how many were started by then."""
        self.now_ms += after_ms
        self.spare.look_after(kind, package=package, is_restart_near=is_near)
        return len(self.started)

    def awaits_restart(self, package: Path | None = NEW) -> int:
        """The same, where a restart of a job with a pipeline is near and the rest is over."""
        self.wants(SpareKind.SPARK, package=package, is_near=True)
        return self.wants(SpareKind.SPARK, module._REST_MS, package, is_near=True)

    def get_ready(self) -> None:
        self.last.memory.is_ready = True

    def close(self) -> None:
        self.spare.end("the test ends")
        for process in self.started:
            if process.poll() is None:
                process.signal(SIGKILL)
                process.wait()
                process.close()
        self.selector.close()

    def _start(self, kind: SpareKind, package: Path) -> ChildProcess:
        self.packages.append(package)
        log_file = self._folder / f"spare-{kind.name}-{len(self.started)}.log"
        self.started.append(ChildProcess.start(["/bin/cat"], {}, log_file, self.now_ms))
        return self.last


@pytest.fixture(name="kept")
def _kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Kept]:
    made = _Kept(tmp_path)
    monkeypatch.setattr(module, "boot_ms", lambda: made.now_ms)
    monkeypatch.setattr(module, "used_mb", made.count)
    yield made
    made.close()


def test_a_spare_is_begun_where_there_is_room_and_stays(kept: _Kept) -> None:
    """At the first look; later looks find it well, also when nothing more is wanted."""
    assert kept.wants() == 1
    kept.spare.look_after(None)
    assert kept.wants(after_ms=module._LOOK_MS) == 1
    assert kept.spare.last_report() == SpareReport("plain", is_ready=False)
    assert kept.last.poll() is None


def test_without_a_wish_or_room_no_spare_is_begun(kept: _Kept) -> None:
    """It lives of what the others leave."""
    assert (kept.wants(None), kept.wants(SpareKind.NONE)) == (0, 0)
    kept.used_mb = NO_ROOM_MB
    assert kept.wants() == 0
    kept.used_mb = 0
    assert kept.wants(after_ms=module._LOOK_MS) == 1
    counted = kept.counted
    kept.spare = Spare(kept._start, kept.selector, 0)
    assert (kept.wants(), kept.counted) == (1, counted), "its memory is unknown"


def test_a_hand_over_gives_the_process_and_is_followed_by_a_rest(kept: _Kept) -> None:
    """The container that starts comes first, also one without a spare: the next begins later."""
    assert kept.spare.take(OLD) is None
    assert kept.wants(after_ms=module._REST_MS - 1) == 0
    assert kept.wants(after_ms=1) == 1
    handed = kept.spare.take(OLD)
    assert handed is kept.last
    assert handed.poll() is None
    assert kept.spare.last_report() is None
    assert kept.wants(after_ms=module._REST_MS - 1) == 1
    assert kept.wants(after_ms=1) == 2


@pytest.mark.parametrize("fault", ["has died", "stands still", "has lost its Spark"])
def test_an_unusable_spare_gets_no_permit(kept: _Kept, fault: str) -> None:
    """A permit would be lost on it, or begin later than a new process: it is ended."""
    kept.wants()
    if fault == "has died":
        kept.last.signal(SIGKILL)
        kept.last.wait()
    elif fault == "stands still":
        kept.now_ms += child_process._MUTE_MS + 1
    else:
        _lose(kept)
    assert kept.spare.take(OLD) is None
    assert kept.spare.last_report() is None
    assert kept.last.poll() == -SIGKILL


def test_a_spare_that_has_died_is_replaced_after_a_rest(kept: _Kept) -> None:
    """The launcher does not report it to the AM meanwhile, and its log is gone."""
    kept.wants()
    kept.last.signal(SIGKILL)
    kept.last.wait()
    assert kept.wants() == 1
    assert kept.spare.last_report() is None
    assert not kept.last.log_file.exists()
    assert kept.wants(after_ms=module._REST_MS - 1) == 1
    assert kept.wants(after_ms=1) == 2
    assert kept.last.poll() is None


def test_a_spare_that_has_lost_its_spark_is_replaced(kept: _Kept) -> None:
    """It would be no fast start; one that is not ready yet has lost nothing."""
    kept.wants()
    assert kept.wants(after_ms=module._LOOK_MS) == 1
    assert kept.last.poll() is None
    _lose(kept)
    kept.wants()
    assert kept.last.poll() == -SIGKILL
    assert kept.wants(after_ms=module._REST_MS) == 2


def test_a_spare_of_another_kind_is_replaced_by_the_requested_one(kept: _Kept) -> None:
    """After the rest, as what runs wants another one."""
    kept.wants()
    kept.wants(SpareKind.SPARK)
    assert kept.last.poll() == -SIGKILL
    kept.wants(SpareKind.SPARK, after_ms=module._REST_MS)
    assert kept.spare.last_report() == SpareReport("spark", is_ready=False)


def test_a_spare_whose_memory_is_needed_ends_for_long(kept: _Kept) -> None:
    """The container must not be killed for it; the next is not begun after a usual rest."""
    kept.wants()
    kept.used_mb = NO_ROOM_MB
    kept.wants(after_ms=module._LOOK_MS)
    assert kept.last.poll() == -SIGKILL
    kept.used_mb = 0
    assert kept.wants(after_ms=module._SHORTAGE_MS - 1) == 1
    assert kept.wants(after_ms=1) == 2


def test_before_a_restart_a_spare_starts_its_spark(kept: _Kept) -> None:
    """Once the package is here; with the restart taken back, it is one as before again."""
    kept.wants(SpareKind.SPARK)
    assert kept.awaits_restart(None) == 1, "its package is on its way"
    assert kept.last.poll() is None
    assert kept.awaits_restart() == 2
    assert kept.spare.last_report() == SpareReport("warm", is_ready=False)
    assert not kept.spare.is_prepared(NEW)
    kept.get_ready()
    assert kept.spare.is_prepared(NEW)
    kept.wants(SpareKind.SPARK)
    kept.wants(SpareKind.SPARK, after_ms=module._REST_MS)
    assert kept.spare.last_report() == SpareReport("spark", is_ready=False)


def test_a_spark_without_room_is_started_by_the_restart(
    kept: _Kept, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the numbers; a spare with its imports waits as ever."""
    caplog.set_level("INFO", "launcher")
    kept.used_mb = MEMORY_MB - needed_for_spare(MEMORY_MB, has_jvm=True) + 1
    kept.awaits_restart()
    assert kept.spare.last_report() == SpareReport("spark", is_ready=False)
    assert "before it needs 592 MB, and 433 of 1024 MB are used" in caplog.text
    kept.used_mb = 0
    assert kept.awaits_restart() == 1, "it stays so for this restart"
    kept.wants(SpareKind.SPARK, package=NEW)
    assert kept.awaits_restart() == 2, "and not for the next one"
    assert kept.spare.last_report() == SpareReport("warm", is_ready=False)


def test_a_spark_whose_memory_is_needed_is_started_by_the_restart(kept: _Kept) -> None:
    """It ends; one with its imports takes its place."""
    kept.awaits_restart()
    kept.used_mb = NO_ROOM_MB
    kept.wants(SpareKind.SPARK, module._LOOK_MS, NEW, is_near=True)
    assert kept.last.poll() == -SIGKILL
    assert not kept.spare.is_prepared(NEW)
    kept.used_mb = 0
    assert kept.awaits_restart() == 2
    assert kept.spare.last_report() == SpareReport("spark", is_ready=False)
    kept.used_mb = NO_ROOM_MB
    kept.wants(SpareKind.SPARK, module._LOOK_MS, NEW, is_near=True)
    assert kept.spare.is_prepared(NEW), "that one lacks room, too"


def test_a_spare_that_fails_reports_why(kept: _Kept) -> None:
    """The last line of its log; it is not ready, so no restart follows."""
    assert kept.spare.fault() is None
    kept.awaits_restart()
    with kept.last.log_file.open("a") as log:
        log.write("first line\nno Spark is made ready: a fault\n\n")
    assert kept.spare.fault() is None
    kept.last.memory.has_failed = True
    assert kept.spare.fault() == "no Spark is made ready: a fault"
    assert not kept.spare.is_prepared(NEW)


def test_memory_is_counted_once_in_a_while(kept: _Kept) -> None:
    """A launcher looks after its spare at each turn, and counting reads all processes."""
    for _ in range(3):
        kept.wants(after_ms=1)
    assert kept.counted == 1
    kept.wants(after_ms=module._LOOK_MS)
    assert kept.counted == 2


def test_a_spare_of_another_package_gets_no_permit(kept: _Kept) -> None:
    """It has imported other code: it is ended, and a new process gets the permit."""
    kept.wants()
    assert kept.spare.package == OLD
    assert kept.spare.take(NEW) is None
    assert kept.last.poll() == -SIGKILL
    assert kept.spare.last_report() is None
    kept.wants(after_ms=module._REST_MS, package=NEW)
    assert kept.spare.take(NEW) is kept.last


def test_a_spare_is_replaced_by_one_of_the_wanted_package(kept: _Kept) -> None:
    """After the rest. While that package is not here yet, what there is stays."""
    kept.wants()
    kept.wants(package=None)
    assert kept.last.poll() is None
    assert kept.wants(package=NEW) == 1
    assert kept.last.poll() == -SIGKILL
    assert kept.wants(after_ms=module._REST_MS, package=None) == 1, "none is begun"
    assert kept.wants(package=NEW) == 2
    assert kept.packages == [OLD, NEW]


def test_a_package_is_prepared_once_its_spare_is_ready(kept: _Kept) -> None:
    """Not by one of another package, nor while the next one is still to be begun."""
    kept.wants()
    assert not kept.spare.is_prepared(OLD)
    kept.get_ready()
    assert (kept.spare.is_prepared(OLD), kept.spare.is_prepared(NEW)) == (True, False)
    kept.wants(package=NEW)
    assert not kept.spare.is_prepared(NEW)
    kept.wants(after_ms=module._REST_MS, package=NEW)
    assert not kept.spare.is_prepared(NEW)
    kept.get_ready()
    assert (kept.spare.is_prepared(OLD), kept.spare.is_prepared(NEW)) == (False, True)


def test_where_no_spare_is_kept_a_package_is_prepared_without_one(
    kept: _Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is wanted, the memory is not known, there is no room, or it cannot be started."""
    assert kept.spare.is_prepared(OLD)
    kept.wants(SpareKind.NONE)
    assert kept.spare.is_prepared(OLD)
    kept.used_mb = NO_ROOM_MB
    kept.wants()
    assert kept.spare.is_prepared(OLD)
    kept.used_mb = 0
    kept.wants(after_ms=module._LOOK_MS)
    assert not kept.spare.is_prepared(OLD)
    kept.get_ready()
    kept.used_mb = NO_ROOM_MB
    kept.wants(after_ms=module._LOOK_MS)
    assert kept.last.poll() == -SIGKILL
    assert kept.spare.is_prepared(OLD), "its memory was needed"
    kept.wants(None)
    assert kept.spare.is_prepared(OLD), "nothing runs: what was wanted last counts"
    kept.used_mb = 0

    def refused(*_: object) -> ChildProcess:
        raise OSError("no process")

    monkeypatch.setattr(kept.spare, "_start", refused)
    kept.wants(after_ms=module._SHORTAGE_MS)
    assert kept.spare.is_prepared(OLD)
    kept.spare = Spare(kept._start, kept.selector, 0)
    kept.wants()
    assert kept.spare.is_prepared(OLD)


def _lose(kept: _Kept) -> None:
    """The spare was ready, and is no longer."""
    kept.last.memory.is_ready = True
    kept.wants()
    kept.last.memory.is_ready = False
