"""Samza's own scenarios of its container process manager, P1 to P17, by what ours does.

Source: samza-behaviours 14.3. YARN's exit codes reach the allocator as causes: 1 is FAILED, -100,
-101 and -102 are the end of a YARN container that the cluster took back, 0 is FINISHED.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import JobPhase
from homeport.appmaster.allocation.protocol.events import ResourceEnded, ShutdownRequested
from homeport.appmaster.allocation.protocol.instructions import EndJob, Instruction, JobResult
from homeport.appmaster.report.job_status import JobHealth, health
from homeport.job_coordinator.model.ids import ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    asks,
    check_in,
    disarms,
    forgets_failures,
    inc,
    live,
    model,
    never_came,
    permits,
    releases,
    remembers_failure,
    rest_over,
    rests,
    started,
    stopped,
    stops,
    window_over,
)


def _fail(machine: Machine, resource: str = "r0", host: str = "a") -> tuple[Instruction, ...]:
    """Processor 0 exits 1, and is launched again where its launcher still may run it."""
    stated = machine.feed(stopped("0", machine.container("0").epoch))
    if machine.phase("0") is P.ASSIGNED:
        machine.feed(check_in(resource, host))
        machine.feed(started("0", machine.container("0").epoch))
    return stated


def _result(instructions: tuple[Instruction, ...]) -> JobResult | None:
    return next((i.result for i in instructions if isinstance(i, EndJob)), None)


def test_one_container_is_one_request(machine: Machine) -> None:
    """P1: a job of one container asks for one, and is not deployed yet."""
    assert machine.deploy({"0": None}, "a") == asks(1, "a")
    assert health(machine.state) is JobHealth.DEPLOYING


def test_a_container_that_runs_already_is_not_requested(machine: Machine) -> None:
    """P2: two containers, 0 found running by a driver that starts again: one request, no stop."""
    machine.feed(model({"0": "a", "1": "b"}, p0=1))
    assert machine.feed(check_in("r0", "a", running=inc("0", 1))) == ()
    assert machine.feed(live("a", "b")) == asks(1, "b")
    assert machine.phase("0") is P.RUNNING


def test_a_container_with_an_outdated_model_is_stopped_first(machine: Machine) -> None:
    """P3: the same, but the model has changed meanwhile: one request, and the running one stops."""
    published = model({"0": "a", "1": "b"}, version=2, p0=1)
    machine.feed(replace(published, floors={ProcessorId("0"): 2}))
    assert machine.feed(check_in("r0", "a", running=inc("0", 1))) == stops("r0", "0", 1)
    assert machine.feed(live("a", "b")) == asks(1, "b")


def test_after_the_end_nothing_is_left_to_do(machine: Machine) -> None:
    """P4: shut down: no timer, no request, no launcher that is kept; the end is reported once."""
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.feed(check_in("r0", "a", request=1), ShutdownRequested())
    end = machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert _result(end) is JobResult.KILLED
    assert machine.state.timers == frozenset()
    assert all(r.is_released for r in machine.state.resources)
    assert machine.feed(live("a", "b", "c")) == ()


def test_the_job_has_succeeded_when_its_containers_finished(machine: Machine) -> None:
    """P5: the only container exits 0: SUCCEEDED, nothing is requested again."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    end = machine.feed(stopped("0", 1, StopCause.FINISHED, 0))
    assert end[0] == releases("r0")[0]
    assert _result(end) is JobResult.SUCCEEDED
    assert machine.state.phase is JobPhase.ENDED


def test_the_job_fails_when_its_retries_are_used_up(machine_with: MachineWith) -> None:
    """P6: retry.count 1: the first exit 1 is retried, the job is healthy again; the second ends it.

    Samza asks for any host again; here the launcher lives and runs the next one.
    """
    machine = machine_with(retry_count=1, host_affinity_enabled=False, last_retry_delay_ms=360_000)
    machine.deploy({"0": None}, "a")
    machine.run("0", "r0", "a", 1)
    assert machine.feed(stopped("0", 1)) == remembers_failure("0")
    assert health(machine.state) is JobHealth.RECOVERING
    assert machine.feed(check_in("r0", "a")) == permits("r0", "0", 2, (inc("0", 1),))
    machine.feed(started("0", 2))
    assert health(machine.state) is JobHealth.DEPLOYED
    assert _result(machine.feed(stopped("0", 2))) is JobResult.FAILED


@pytest.mark.parametrize("host_affinity_enabled", [True, False])
@pytest.mark.parametrize("fail_job_after_retries", [True, False])
def test_failures_that_lie_far_apart_never_end_the_job(
    machine_with: MachineWith, *, host_affinity_enabled: bool, fail_job_after_retries: bool
) -> None:
    """P7: three retries, each failure after the window of the last one: the count is one again."""
    machine = machine_with(
        retry_count=3,
        host_affinity_enabled=host_affinity_enabled,
        fail_job_after_retries=fail_job_after_retries,
    )
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    for _ in range(10):
        _fail(machine)
        assert (machine.phase("0"), machine.container("0").failures) == (P.RUNNING, 1)
        machine.feed(window_over("0"))


@pytest.mark.parametrize("fail_job_after_retries", [True, False])
def test_failures_within_the_window_are_counted(
    machine_with: MachineWith, *, fail_job_after_retries: bool
) -> None:
    """P8: affinity off, three retries: 1, 2, 3, each retried at once; the fourth is the end of it.

    Of the job, or, by the flag, of the container alone.
    """
    machine = machine_with(
        retry_count=3,
        host_affinity_enabled=False,
        last_retry_delay_ms=360_000,
        fail_job_after_retries=fail_job_after_retries,
    )
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.run("1", "r1", "b", 2)
    for count in (1, 2, 3):
        assert _fail(machine) == remembers_failure("0")
        assert machine.container("0").failures == count
    stated = _fail(machine)
    assert machine.phase("0") is P.FAILED
    ending = JobPhase.ENDING if fail_job_after_retries else JobPhase.ACTIVE
    assert machine.state.phase is ending
    assert (stops("r1", "1", 1)[0] in stated) is fail_job_after_retries


def test_the_last_retry_of_a_container_with_a_home_waits(machine_with: MachineWith) -> None:
    """P9: affinity on, three retries: after the third failure comes the delay, then its home.

    The delay is what its key says; Samza adds a second to it.
    """
    machine = machine_with(retry_count=3, last_retry_delay_ms=360_000)
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.run("1", "r1", "b", 2)
    _fail(machine)
    _fail(machine)
    assert _fail(machine) == (*rests("0", 360_000), *releases("r0"))
    assert machine.phase("0") is P.BACKING_OFF
    assert machine.feed(rest_over("0")) == asks(3, "a")
    machine.run("0", "r2", "a", 3)
    _fail(machine, "r2")
    assert (machine.phase("0"), machine.state.phase) == (P.FAILED, JobPhase.ENDING)


def test_a_job_that_goes_on_without_one_container_is_degraded(machine_with: MachineWith) -> None:
    """P10: as P9 with the flag off: given up, not asked for again; the others run on."""
    machine = machine_with(retry_count=3, last_retry_delay_ms=360_000, fail_job_after_retries=False)
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.run("1", "r1", "b", 2)
    for _ in range(3):
        _fail(machine)
    machine.feed(rest_over("0"))
    machine.run("0", "r2", "a", 3)
    assert machine.feed(stopped("0", 4)) == (*forgets_failures("0"), *releases("r2"))
    assert machine.phases == (P.FAILED, P.RUNNING)
    assert health(machine.state) is JobHealth.DEGRADED


def test_the_end_of_an_unknown_container_changes_nothing(machine: Machine) -> None:
    """P11: a completion of an unknown container is counted, and the job stays healthy."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    machine.stale(
        ResourceEnded(resource_id=ResourceId("stranger")),
        ResourceEnded(request_id=RequestId(99)),
        stopped("7", 1),
    )
    assert health(machine.state) is JobHealth.DEPLOYED


def test_a_container_that_cannot_be_launched_is_requested_elsewhere(machine: Machine) -> None:
    """P12: no launcher came of the request for its home: the next request is for another host."""
    machine.deploy({"0": "a"}, "a", "b")
    stated = machine.feed(ResourceEnded(request_id=RequestId(1)))
    assert stated == (*disarms(1, "expiry"), *remembers_failure("0"), *asks(2, "b"))


def test_a_second_report_of_an_old_containers_end_is_stale(machine: Machine) -> None:
    """P14: its disk failed (-101); it runs again; a second end of the old one (-102) is stale."""
    machine.deploy({"0": None}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.feed(ResourceEnded(RequestId(1), ResourceId("r0"), "disk failed"))
    assert health(machine.state) is JobHealth.RECOVERING
    machine.run("0", "r1", "a", 2)
    assert health(machine.state) is JobHealth.DEPLOYED
    machine.stale(
        ResourceEnded(RequestId(1), ResourceId("r0"), "preempted"),
        ResourceEnded(RequestId(1), story="preempted"),
        stopped("0", 1),
    )
    assert health(machine.state) is JobHealth.DEPLOYED


def test_each_kind_of_end_is_followed_by_a_new_start(machine_with: MachineWith) -> None:
    """P15: an error of its own, then -102, then -100, in a row: it runs again after each."""
    machine = machine_with(host_affinity_enabled=False, retry_count=8)
    machine.deploy({"0": None}, "a")
    machine.run("0", "r0", "a", 1)
    _fail(machine)
    for request, story in ((1, "preempted"), (2, "lost")):
        machine.feed(
            ResourceEnded(
                RequestId(request), ResourceId(f"r{request - 1}"), story, is_taken_back=True
            )
        )
        assert machine.phase("0") is P.REQUESTED
        machine.run("0", f"r{request}", "a", request + 1)
    assert health(machine.state) is JobHealth.DEPLOYED


@pytest.mark.parametrize("fail_job_after_retries", [True, False])
def test_without_retries_the_first_failure_is_the_last(
    machine_with: MachineWith, *, fail_job_after_retries: bool
) -> None:
    """P16: retry.count 0: the job is FAILED, or, by the flag, goes on degraded.

    Not Samza's UNDEFINED, after which YARN starts the application again (17.4 does not copy).
    """
    machine = machine_with(retry_count=0, fail_job_after_retries=fail_job_after_retries)
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.run("1", "r1", "b", 2)
    machine.feed(stopped("0", 1))
    assert machine.phase("0") is P.FAILED
    if fail_job_after_retries:
        assert _result(machine.feed(stopped("1", 1, StopCause.ORDERED, 0))) is JobResult.FAILED
    else:
        assert health(machine.state) is JobHealth.DEGRADED


def test_without_a_limit_it_is_started_for_ever(machine_with: MachineWith) -> None:
    """P17: retry.count -1: fifty failures in a row, fifty starts at home, never an end."""
    machine = machine_with(retry_count=-1, last_retry_delay_ms=360_000)
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    for epoch in range(1, 51):
        assert machine.feed(stopped("0", epoch)) == ()
        assert machine.feed(check_in("r0", "a"))[-1].cause.startswith("LauncherCheckedIn r0 on a")
        machine.feed(started("0", epoch + 1))
    assert (machine.phase("0"), machine.container("0").epoch) == (P.RUNNING, 51)
    assert never_came(1).timer not in machine.state.timers
