"""A launcher and the packages that its orders name: the folders are real, the AM is the test's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from zipped import sha256_of, zipped

from homeport.config.errors import UnavailableError
from homeport.container.host.lease_memory import SpareKind
from homeport.container.launcher import packages
from homeport.job_coordinator.http.messages import Order, OrderKind, Stopped
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.status.shape import SpareReport
from tests.unit.container.launcher.conftest import (
    FIRST,
    LOST_MS,
    SECOND,
    Life,
    check_ins,
    run,
    wait,
)

ONE, TWO = zipped({"tasks.py": "1"}), zipped({"tasks.py": "2"})
FIRST_NAME, SECOND_NAME = sha256_of(ONE), sha256_of(TWO)
SHOWS = 'read -r permit; echo "imports from $PYTHONPATH"; exec sleep 600'


def _folder_of(name: str) -> str:
    """Where a launcher unpacks it."""
    return f"__package-{name}"


def _wants(name: str | None) -> Order:
    """The order to wait, which names the package of the next permit."""
    return Order(OrderKind.WAIT, 10, 0, model_version=7, package=name)


@pytest.fixture(autouse=True)
def _in_its_folder(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """As YARN starts it."""
    monkeypatch.chdir(life.folder)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    life.am.packages = {FIRST_NAME: ONE, SECOND_NAME: TWO}


def _packages_in(folder: Path) -> list[str]:
    """The fetched packages that are there."""
    return sorted(path.name for path in folder.glob("__package-*"))


def _require_successor(life: Life) -> None:
    """The second incarnation is the last, and imports from the first package."""
    log = life.folder / "logs" / "container-0-2.log"
    life.am.then(_wants(FIRST_NAME), lambda: "imports" in log.read_text())
    assert life.run(SHOWS) == 0
    assert log.read_text() == f"imports from {life.folder / _folder_of(FIRST_NAME)}\n"


def _pids_of(life: Life, incarnation: Incarnation) -> set[int]:
    return {m.pid for m in life.am.check_ins if m.running == incarnation}


def test_a_child_runs_with_the_package_that_its_order_names(life: Life) -> None:
    """It is fetched first; check-ins and history say what runs."""
    life.am.then(replace(run(FIRST), package=FIRST_NAME), lambda: "imports" in life.log())
    assert life.run(SHOWS) == 0
    assert life.log() == f"imports from {life.folder / _folder_of(FIRST_NAME)}\n"
    assert (life.folder / _folder_of(FIRST_NAME) / "tasks.py").read_text() == "1"
    assert life.am.fetched == [FIRST_NAME]
    assert {m.package for m in life.am.check_ins if m.running} == {FIRST_NAME}
    assert {m.package for m in life.am.check_ins if not m.running} == {None}
    assert life.events()[0]["package"] == FIRST_NAME


def test_without_the_package_nothing_runs(life: Life) -> None:
    """Not with another one either; the launcher goes on, and runs it once the AM has it."""
    late = life.am.packages.pop(FIRST_NAME)
    order = replace(run(FIRST), package=FIRST_NAME)
    life.am.then(order, lambda: len(life.am.fetched) > 1, 100)
    assert life.run(SHOWS) == 0
    assert life.started == []
    assert _packages_in(life.folder) == []
    life.am.packages[FIRST_NAME] = late
    life.am.then(order, lambda: "imports" in life.log(), 100)
    assert life.run(SHOWS) == 0
    assert _folder_of(FIRST_NAME) in life.log()


def test_an_incarnation_without_its_package_has_stopped_before_it_began(life: Life) -> None:
    """After some tries. It never begins later; the next one does, once the package is there."""
    late = life.am.packages.pop(FIRST_NAME)

    def is_told_again() -> bool:
        life.am.packages[FIRST_NAME] = late
        return len(life.am.reports) == 2

    first = replace(run(FIRST), package=FIRST_NAME)
    life.am.then(first, lambda: bool(life.am.reports), 1000)
    life.am.then(first, is_told_again, 100)
    second = replace(run(SECOND), package=FIRST_NAME)
    life.am.then(second, lambda: life.am.running == SECOND, 1000)
    assert life.run(SHOWS) == 0
    for report in life.am.reports[:2]:
        assert (report.incarnation, report.cause) == (FIRST, StopCause.NO_PACKAGE)
        assert report.last_lines == (f"404 there is no package {FIRST_NAME}",)
    assert len(life.am.fetched) == packages._TRIES + 1
    assert life.am.check_ins[5].unprepared == f"404 there is no package {FIRST_NAME}"
    assert life.am.check_ins[-1].unprepared is None


def test_a_package_that_the_am_does_not_send_is_waited_for_in_vain_once(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a silent AM is: what answers check-ins and others is out of this host's reach."""

    def sends_nothing(_name: str) -> bytes:
        raise UnavailableError("timed out")

    monkeypatch.setattr(life.am, "package", sends_nothing)
    order = replace(run(FIRST), package=FIRST_NAME)
    life.am.then(order, lambda: bool(life.am.reports), LOST_MS // 10)
    assert life.run() == 0
    assert life.am.reports == [Stopped(FIRST, StopCause.CUT_OFF, 1, ("timed out",))]
    assert len(life.am.check_ins) > 10


def test_a_package_is_made_ready_beside_the_child(life: Life) -> None:
    """The child keeps its own; what is neither wanted nor run is gone."""
    life.am.until_runs(FIRST)
    life.am.then(_wants(FIRST_NAME), lambda: life.am.check_ins[-1].prepared == FIRST_NAME)
    life.am.then(_wants(SECOND_NAME), lambda: life.am.check_ins[-1].prepared == SECOND_NAME)
    life.am.then(
        _wants(SECOND_NAME), lambda: _folder_of(FIRST_NAME) not in _packages_in(life.folder)
    )
    assert life.run(SHOWS) == 0
    assert _packages_in(life.folder) == [_folder_of(SECOND_NAME)]
    assert {m.package for m in life.am.check_ins} == {None}
    assert life.log() == f"imports from {life.folder / '__package'}\n"
    assert len(life.started) == 1


def test_the_spare_is_exchanged_for_one_with_the_package(life: Life) -> None:
    """Then it is prepared; the next permit with it is the spare's, without any fetch."""
    life.wanted, life.is_ready = SpareKind.PLAIN, True
    life.am.until_runs(FIRST)
    life.am.then(_wants(None), lambda: life.am.check_ins[-1].spare is not None, 1000)
    life.am.then(_wants(FIRST_NAME), lambda: life.am.check_ins[-1].prepared == FIRST_NAME, 100)
    life.am.until_stopped(FIRST)
    life.am.then(
        replace(run(SECOND), package=FIRST_NAME), lambda: life.am.running == SECOND, step_ms=0
    )
    _require_successor(life)
    child, old, new, *_ = life.started
    assert len({child.pid, old.pid, new.pid}) == 3
    assert _pids_of(life, SECOND) == {new.pid}
    assert life.am.fetched == [FIRST_NAME]


def test_a_spare_with_the_package_of_a_restart_starts_its_spark(life: Life) -> None:
    """The AM hears why it fails, while the child runs on; it is prepared once it is ready."""
    life.wanted = SpareKind.SPARK

    def fails() -> bool:
        if len(life.started) == 2:
            life.started[1].memory.has_failed = True
        return life.am.check_ins[-1].unprepared is not None

    def is_ready() -> bool:
        life.started[1].memory.is_ready = True
        return life.am.check_ins[-1].prepared == FIRST_NAME

    life.am.until_runs(FIRST)
    life.am.then(_wants(FIRST_NAME), fails, 1000)
    life.am.then(_wants(FIRST_NAME), is_ready, 1000)
    assert life.run('echo "its reason"; ' + SHOWS) == 0
    reasons = {m.unprepared for m in life.am.check_ins}
    assert reasons == {None, "its reason"}
    assert life.am.check_ins[-1].spare == SpareReport("warm", is_ready=True)
    assert life.am.running == FIRST


def test_a_spare_of_another_package_gets_no_permit(life: Life) -> None:
    """The order to run names one that no order to wait has named: a new process has it."""
    life.wanted, life.is_ready = SpareKind.PLAIN, True
    life.am.until_runs(FIRST)
    life.am.then(_wants(None), lambda: life.am.check_ins[-1].spare is not None, 1000)
    life.am.until_stopped(FIRST)
    life.am.then(replace(run(SECOND), package=FIRST_NAME), lambda: life.am.running == SECOND)
    _require_successor(life)
    assert _pids_of(life, SECOND) == {life.started[2].pid}


def test_the_way_back_is_to_the_submissions_package(life: Life) -> None:
    """What was fetched is gone, once the spare has that package."""
    life.wanted, life.is_ready = SpareKind.PLAIN, True
    life.am.until_runs(FIRST)
    life.am.then(_wants(FIRST_NAME), lambda: life.am.check_ins[-1].prepared == FIRST_NAME, 100)
    life.am.then(_wants(None), lambda: life.am.check_ins[-1].prepared is None, 100)
    assert life.run(SHOWS) == 0
    assert _packages_in(life.folder) == []
    assert life.am.check_ins[-1].spare is not None


def test_an_am_that_is_busy_changes_no_wish(life: Life) -> None:
    """Its order to wait names neither JobModel nor package: what was made ready stays."""
    life.am.until_runs(FIRST)
    life.am.then(_wants(FIRST_NAME), lambda: life.am.check_ins[-1].prepared == FIRST_NAME)
    life.am.then(wait(), check_ins(life.am, 5))
    life.am.then(UnavailableError("away"), check_ins(life.am, 3))
    life.am.then(_wants(FIRST_NAME), check_ins(life.am, 2))
    assert life.run(SHOWS) == 0
    assert life.am.check_ins[-1].prepared == FIRST_NAME
    assert (_packages_in(life.folder), life.am.fetched) == ([_folder_of(FIRST_NAME)], [FIRST_NAME])


def test_a_launcher_without_a_child_prepares_nothing(life: Life) -> None:
    """An order to wait names a package to launchers that have a container alone."""
    life.am.then(_wants(FIRST_NAME), check_ins(life.am, 3))
    assert life.run(SHOWS) == 0
    assert life.am.fetched == []
