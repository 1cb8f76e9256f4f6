"""Packages on their way from a real server to a child of a real launcher."""

from __future__ import annotations

import os
import resource
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from launchers import CHILD, FIRST, LIMIT_S, SECOND, Am, Launch, Ready, Running, wait_for
from yarn_jobs import alive
from zipped import sha256_of, zipped

from homeport.job_coordinator.http.messages import OrderKind
from homeport.job_coordinator.model.job_package import with_environment
from homeport.job_coordinator.model.outcomes import StopCause

SECOND_VERSION = zipped({"homeport_child/__main__.py": 'print("version 2", flush=True)\n' + CHILD})
NAME = sha256_of(SECOND_VERSION)
FOLDER = f"__package-{NAME}"
MANY_FILES = 6000


def log_of(launcher: Running, epoch: int) -> str:
    """What the child of that epoch has written."""
    path = launcher.folder / "logs" / f"container-0-{epoch}.log"
    return path.read_text() if path.exists() else ""


def said(launcher: Running) -> str:
    """What the launcher has written."""
    return (launcher.folder / "launcher.log").read_text()


def fetched(folder: Path) -> list[str]:
    """The packages that lie there beside YARN's."""
    return sorted(path.name for path in folder.glob("__package-*"))


def test_a_child_runs_with_the_package_that_was_fetched(am: Am, launch: Launch) -> None:
    """The code is that of the zip; check-ins and history say so; the launcher ends in order."""
    am.packages[NAME] = SECOND_VERSION
    launcher = launch()
    am.orders(OrderKind.RUN, FIRST, NAME)
    launcher.child_pid(am)
    assert log_of(launcher, 1).startswith("version 2\n")
    assert am.check_ins[-1].package == NAME
    assert fetched(launcher.folder) == [FOLDER]
    am.orders(OrderKind.EXIT)
    assert launcher.process.wait(LIMIT_S) == 0
    assert am.asked == [NAME]


def test_the_spare_is_exchanged_while_the_child_runs(am: Am, ready: Ready) -> None:
    """Once it is ready with the new code the AM hears so; the next permit is its, and back too."""
    am.packages[NAME] = SECOND_VERSION
    launcher, first = ready("losing")
    old = launcher.spare_pid()
    am.orders(OrderKind.WAIT, package=NAME)
    wait_for(lambda: am.check_ins[-1].prepared == NAME, launcher)
    new = launcher.spare_pid(old)
    assert (alive(old), alive(new), alive(first)) == (False, True, True)
    assert (am.check_ins[-1].running, am.check_ins[-1].package) == (FIRST, None)
    am.orders(OrderKind.RUN, SECOND, NAME)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: am.check_ins[-1].running == SECOND, launcher)
    assert (am.check_ins[-1].pid, am.check_ins[-1].package) == (new, NAME)
    wait_for(lambda: "ready" in log_of(launcher, 2), launcher)
    assert log_of(launcher, 2).startswith("version 2\n")
    assert am.asked == [NAME]
    am.orders(OrderKind.WAIT, SECOND)
    wait_for(lambda: am.check_ins[-1].prepared is None, launcher)
    assert fetched(launcher.folder) == [FOLDER], "its child runs with it"


def test_an_am_that_goes_in_the_middle_of_a_fetch_costs_no_container(am: Am, ready: Ready) -> None:
    """The child keeps its lease meanwhile; the package comes when the AM is back."""
    am.packages[NAME] = SECOND_VERSION
    launcher, child = ready()
    am.may_send.clear()
    am.orders(OrderKind.WAIT, package=NAME)
    wait_for(lambda: bool(am.asked), launcher)
    checked_in = len(am.check_ins)
    wait_for(lambda: len(am.check_ins) > checked_in + 3, launcher)  # a fetch holds up nothing
    am.gone()
    wait_for(lambda: f"package {NAME[:16]} is not here" in said(launcher), launcher)
    assert fetched(launcher.folder) == []
    am.may_send.set()
    am.back()
    wait_for(lambda: am.check_ins[-1].prepared == NAME, launcher)
    assert fetched(launcher.folder) == [FOLDER]
    assert alive(child)
    assert am.reports == []


@pytest.mark.parametrize(
    ("sent", "name", "why"),
    [
        (zipped({"homeport_child/__main__.py": "print(3)"}), NAME, "bytes of another sha256"),
        (SECOND_VERSION[:-40], sha256_of(SECOND_VERSION[:-40]), "the package is no zip"),
        (None, NAME, "404 there is no package"),
    ],
)
def test_what_is_not_the_package_never_runs(
    am: Am, launch: Launch, sent: bytes | None, name: str, why: str
) -> None:
    """Nor does YARN's in its place. One line says why; it runs once an AM has it right."""
    if sent is not None:
        am.packages[name] = sent
    launcher = launch()
    am.orders(OrderKind.RUN, FIRST, name)
    wait_for(lambda: why in said(launcher), launcher)
    checked_in = len(am.check_ins)
    wait_for(lambda: len(am.check_ins) > checked_in + 20, launcher)  # a second of tries
    assert {message.running for message in am.check_ins} == {None}
    assert fetched(launcher.folder) == []
    assert said(launcher).count("is not here, trying again") == 1
    am.gone()
    am.packages[NAME] = SECOND_VERSION
    am.back()
    am.orders(OrderKind.RUN, FIRST, NAME)
    launcher.child_pid(am)
    assert log_of(launcher, 1).startswith("version 2\n")


def test_no_entry_of_a_package_leaves_its_folder(am: Am, launch: Launch, tmp_path: Path) -> None:
    """It is refused as a whole, before anything is written."""
    evil = zipped({"homeport_child/__main__.py": CHILD, "../x": "1", "../../x": "2"})
    am.packages[sha256_of(evil)] = evil
    launcher = launch()
    am.orders(OrderKind.RUN, FIRST, sha256_of(evil))
    wait_for(lambda: "the package has an entry outside it: '../x'" in said(launcher), launcher)
    assert fetched(launcher.folder) == []
    assert not [*tmp_path.rglob("x")]
    assert {message.running for message in am.check_ins} == {None}


def test_a_disk_without_room_leaves_nothing_half(am: Am, ready: Ready) -> None:
    """The kernel refuses to write more; the child runs on, and the package comes with the room."""
    large = zipped({"homeport_child/__main__.py": CHILD, "large": "x" * 200_000})
    name = sha256_of(large)
    am.packages[name] = large
    launcher, child = ready()
    pid = launcher.process.pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    am.orders(OrderKind.WAIT, package=name)
    wait_for(lambda: "File too large" in said(launcher), launcher)
    checked_in = len(am.check_ins)
    wait_for(lambda: len(am.check_ins) > checked_in + 10, launcher)
    assert am.check_ins[-1].prepared is None
    wait_for(lambda: fetched(launcher.folder) == [], launcher)  # the next try may be under way
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    wait_for(lambda: am.check_ins[-1].prepared == name, launcher)
    assert fetched(launcher.folder) == [f"__package-{name}"]
    assert alive(child)


def test_an_incarnation_whose_package_has_no_room_has_stopped_before_it_began(
    am: Am, launch: Launch
) -> None:
    """The AM hears so, with the reason, after some seconds; a later one runs once there is room."""
    large = zipped({"homeport_child/__main__.py": CHILD, "large": "x" * 200_000})
    name = sha256_of(large)
    am.packages[name] = large
    launcher = launch()
    wait_for(lambda: bool(am.check_ins), launcher)
    pid = launcher.process.pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    am.orders(OrderKind.RUN, FIRST, name)
    report = am.report(launcher)
    assert (report.incarnation, report.cause) == (FIRST, StopCause.NO_PACKAGE)
    assert "File too large" in report.last_lines[0]
    assert "File too large" in (am.check_ins[-1].unprepared or "")
    assert {m.running for m in am.check_ins} == {None}
    wait_for(lambda: fetched(launcher.folder) == [], launcher)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    am.orders(OrderKind.RUN, SECOND, name)
    wait_for(lambda: am.check_ins[-1].running == SECOND, launcher)


def test_a_launcher_that_is_killed_while_it_unpacks_leaves_no_half_package(
    am: Am, launch: Launch
) -> None:
    """The next one in its folder begins again, and the child imports all of it."""
    code = "import many\nassert len(many.__path__) == 1\n" + CHILD
    files = {f"many/f{number}.py": f"N = {number}" for number in range(MANY_FILES)}
    package = zipped({**files, "many/__init__.py": "", "homeport_child/__main__.py": code})
    name = sha256_of(package)
    am.packages[name] = package
    am.orders(OrderKind.RUN, FIRST, name)
    launcher = launch()
    unfinished = launcher.folder / f"__package-{name}.unfinished"
    wait_for(unfinished.is_dir, launcher)
    launcher.process.send_signal(signal.SIGSTOP)
    assert fetched(launcher.folder) == [unfinished.name]
    launcher.process.kill()
    launcher.process.wait()
    assert unfinished.is_dir()
    again = launch(folder=launcher.folder)
    again.child_pid(am)
    assert fetched(launcher.folder) == [f"__package-{name}"]
    unpacked = launcher.folder / f"__package-{name}" / "many"
    assert len([*unpacked.glob("f*.py")]) == MANY_FILES


def test_a_permit_keeps_its_lease_while_its_package_is_fetched(am: Am, launch: Launch) -> None:
    """A fetch that takes longer than a lease must not cost the launcher."""
    am.packages[NAME] = SECOND_VERSION
    am.may_send.clear()
    launcher = launch()
    am.orders(OrderKind.RUN, FIRST, NAME)
    wait_for(lambda: am.table.renewed_ms(FIRST) is not None, launcher)
    assert am.check_ins[-1].running is None
    am.may_send.set()
    launcher.child_pid(am)


def _environment(folder: Path) -> Path:
    """Another interpreter, by its path."""
    made = folder / "other-python"
    made.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    made.chmod(0o755)
    return made


def test_a_launcher_goes_on_in_the_environment_of_its_package(
    am: Am, launch: Launch, tmp_path: Path
) -> None:
    """The same process; what has ended here does not run again; and it goes back."""
    python = str(_environment(tmp_path))
    named = with_environment(SECOND_VERSION, python)
    name = sha256_of(named)
    am.packages[name] = named
    launcher = launch("finish")
    am.orders(OrderKind.RUN, FIRST)
    assert am.report(launcher).cause is StopCause.FINISHED
    own = am.check_ins[0].python
    am.orders(OrderKind.RUN, SECOND, name)
    wait_for(lambda: am.check_ins[-1].python == python, launcher)
    before = len(am.reports)
    am.orders(OrderKind.RUN, FIRST, name)
    wait_for(lambda: any(r.incarnation == FIRST for r in am.reports[before:]), launcher)
    assert {r.cause for r in am.reports if r.incarnation == FIRST} == {StopCause.FINISHED}
    third = replace(SECOND, epoch=3)
    am.orders(OrderKind.RUN, third)
    wait_for(lambda: am.check_ins[-1].python == own, launcher)
    assert said(launcher).count("goes on in") == 2
    am.orders(OrderKind.EXIT)
    assert launcher.process.wait(LIMIT_S) == 0
    assert launcher.child_log.count("ready") == 1


def test_an_environment_that_cannot_be_had_is_reported_and_changes_nothing(
    am: Am, ready: Ready, tmp_path: Path
) -> None:
    """While the child works; an order to run with it is a stop before the start."""
    broken = tmp_path / "broken-python"
    broken.write_text("#!/bin/sh\necho no such library >&2; exit 1\n")
    broken.chmod(0o755)
    named = with_environment(SECOND_VERSION, str(broken))
    name = sha256_of(named)
    am.packages[name] = named
    launcher, child = ready()
    am.orders(OrderKind.WAIT, package=name)
    fault = f"environment {broken}: no such library"
    wait_for(lambda: am.check_ins[-1].unprepared == fault, launcher)
    assert (am.check_ins[-1].prepared, am.check_ins[-1].running) == (None, FIRST)
    assert fetched(launcher.folder) == []
    os.kill(child, signal.SIGKILL)
    am.orders(OrderKind.RUN, SECOND, name)
    wait_for(lambda: any(r.cause is StopCause.NO_PACKAGE for r in am.reports), launcher)
