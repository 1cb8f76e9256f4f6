"""Why a child has ended, and when it must be killed."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from homeport.container.child.running import BeatWatch, RunningChild, cause_of, last_lines
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

if TYPE_CHECKING:
    from homeport.container.child.process import ChildProcess


@pytest.mark.parametrize(
    ("exit_code", "ordered", "cause"),
    [
        (0, False, StopCause.FAILED),
        (0, True, StopCause.FAILED),
        (143, True, StopCause.ORDERED),
        (-15, True, StopCause.ORDERED),
        (-9, True, StopCause.ORDERED),
        (143, False, StopCause.SIGNALLED),
        (-15, False, StopCause.SIGNALLED),
        (-9, False, StopCause.KILLED),
        (1, False, StopCause.FAILED),
        (1, True, StopCause.FAILED),
        (-11, False, StopCause.FAILED),
        (72, False, StopCause.UNAVAILABLE),
        (72, True, StopCause.UNAVAILABLE),
        (73, False, StopCause.CUT_OFF),
        (74, False, StopCause.ORDERED),
        (74, True, StopCause.ORDERED),
        (75, False, StopCause.DISK_FULL),
        (75, True, StopCause.DISK_FULL),
    ],
)
def test_the_cause_depends_on_the_code_and_on_the_order(
    exit_code: int,
    ordered: bool,  # noqa: FBT001 - a parameter of the table above
    cause: StopCause,
) -> None:
    """The same code is an order obeyed or a stray signal; 0 alone is a failure: any code has it."""
    assert cause_of(exit_code, finished=False, ordered=ordered) is cause


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("signalled", [False, True])
def test_finished_is_exit_code_0_of_a_child_that_has_said_so(
    ordered: bool,  # noqa: FBT001 - a parameter of the table above
    signalled: bool,  # noqa: FBT001 - as above
) -> None:
    """Both are needed: a child that has said so and then exits otherwise has not finished."""
    assert cause_of(0, finished=True, ordered=ordered, signalled=signalled) is StopCause.FINISHED
    assert cause_of(1, finished=True, ordered=ordered) is StopCause.FAILED
    assert cause_of(-9, finished=True, ordered=False) is StopCause.KILLED


@pytest.mark.parametrize("exit_code", [0, 143, -15, -9, 1])
def test_a_child_that_is_signalled_with_its_launcher_has_not_failed(exit_code: int) -> None:
    """YARN signals the whole group: a child whose JVM went first may exit with anything."""
    cause = cause_of(exit_code, finished=False, ordered=False, signalled=True)
    assert cause is StopCause.SIGNALLED


def test_the_last_lines_are_those_that_say_something() -> None:
    """Blank lines do not count, and bytes that are no UTF-8 do no harm."""
    text = b"".join(b"line %d\n\n" % n for n in range(40)) + b"\xff end  \n\n"
    assert last_lines(text, 3) == ("line 38", "line 39", "\ufffd end")
    assert len(last_lines(text)) == 20
    assert last_lines(b"") == ()


def test_a_child_that_is_silent_for_the_limit_hangs() -> None:
    """Safety C3: at the limit, not before."""
    watch = BeatWatch.at(0, 60_000)
    hung = [now for now in range(0, 100_000, 500) if watch.is_hung(20_000, now)]
    assert hung[0] == 80_000


def test_after_a_pause_of_the_launcher_its_child_has_the_whole_limit() -> None:
    """Both were stopped: the child has the whole limit again."""
    watch = BeatWatch.at(0, 60_000)
    assert not watch.is_hung(0, 100_000)
    assert not watch.is_hung(0, 100_500)


@pytest.mark.parametrize("shutdown_ms", [0, 100, 5000])
def test_a_child_that_the_kernel_holds_is_killed_once_in_a_while(shutdown_ms: int) -> None:
    """However short its time to stop: else its parent would do nothing else."""
    process = cast("ChildProcess", SimpleNamespace(memory=SimpleNamespace(beat_ms=0)))
    child = RunningChild(
        incarnation=Incarnation(ProcessorId("0"), 1),
        process=process,
        beats=BeatWatch.at(0, 60_000),
        shutdown_ms=shutdown_ms,
        kill_at_ms=10_000,
    )
    times = [ms for ms in range(9_000, 30_000, 100) if child.reason_to_kill(ms) is not None]
    gaps = {later - earlier for earlier, later in itertools.pairwise(times)}
    assert times[0] == 10_000
    assert gaps == {max(shutdown_ms, 1000)}
