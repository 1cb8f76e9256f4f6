"""Standbys and their places: failures, racks, candidates, and whether the job is deployed.

Names as S9 are the scenarios of the reference, 14.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from immutables import Map

from homeport.appmaster.allocation import host_search
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    JobPhase,
    ResourceState,
    initial_state,
)
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import HostReport, HostsObserved
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.report.job_status import JobHealth, health
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    SETTINGS,
    ZERO,
    A,
    B,
    C,
    Machine,
    MachineWith,
    asks,
    check_in,
    job,
    live,
    model,
    releases,
    rest_over,
    stopped,
    stops,
)


def test_a_launcher_on_the_actives_host_is_released_and_another_host_requested(
    machine_with: MachineWith,
) -> None:
    """S9, S11: never any host. After a refusal it rests, so that nothing spins."""
    machine = machine_with(launch_retry_ms=1000)
    machine.feed(job({"0": "a", "0-0": None}), live("a", "z"))
    machine.run("0", "r0", "a", 1)
    assert machine.container("0-0").request_id == 2
    assert machine.feed(check_in("r2", "a", request=2))[-1:] == releases("r2")
    assert machine.phase("0-0") is P.BACKING_OFF
    assert machine.feed(rest_over("0-0")) == asks(3, "z")
    machine.run("0-0", "r3", "z", 3)


@pytest.mark.parametrize("processor", ["0", "0-0"])
def test_failures_of_both_roles_carry_equal_weight(pair: Machine, processor: str) -> None:
    """The same retry keys, the same end of the job."""
    resource, host = {"0": ("r0", "a"), "0-0": ("r1", "b")}[processor]
    for epoch in (1, 2):
        pair.feed(stopped(processor, epoch), check_in(resource, host))
    pair.feed(stopped(processor, 3))
    assert pair.phase(processor) is P.FAILED
    assert pair.state.ending is not None
    assert pair.state.ending.result is JobResult.FAILED


def test_a_standby_that_says_it_finished_has_failed(pair: Machine) -> None:
    """Its work ends with the job."""
    pair.feed(stopped("0-0", 1, StopCause.FINISHED, 0))
    assert (pair.phase("0-0"), pair.container("0-0").failures) == (P.ASSIGNED, 1)


def test_a_model_that_makes_two_replicas_of_one_keeps_them_apart(machine: Machine) -> None:
    """Processor x was a standby of 1, beside 0: as a standby of 0 it must not be there."""
    homes = {"0": "a", "1": "b", "x": "a", "y": "b"}
    of_one = {ProcessorId("x"): ProcessorId("1"), ProcessorId("y"): ProcessorId("0")}
    machine.feed(replace(model(homes), standbys=of_one), live("a", "b", "c"))
    for number, processor in enumerate(homes):
        machine.feed(check_in(f"r{number}", str(homes[processor])))
    assert {c.phase for c in machine.state.containers} == {P.STARTING}
    swapped = {ProcessorId("x"): ProcessorId("0"), ProcessorId("y"): ProcessorId("1")}
    resource = machine.container("x").resource_id
    stated = machine.feed(replace(model(homes, 2), standbys=swapped))
    assert stops(str(resource), "x", 1)[0] in stated
    machine.feed(stopped("x", 1, StopCause.ORDERED))
    assert machine.container("x").requested_host == "c"


def test_a_standby_on_a_forbidden_host_of_a_new_model_gives_up_its_request(
    machine: Machine,
) -> None:
    """It asks elsewhere under the new model; one that is not in the way goes on."""
    homes = {"0": "a", "1": "b", "x": "a", "y": "c"}
    of_one = {ProcessorId("x"): ProcessorId("1"), ProcessorId("y"): ProcessorId("1")}
    machine.feed(replace(model(homes), standbys=of_one), live("a", "b", "c", "d"))
    machine.run("0", "r1", "a", 1)
    assert (machine.container("x").requested_host, machine.container("y").requested_host) == (
        "a",
        "c",
    )
    of_zero = {ProcessorId("x"): ProcessorId("0"), ProcessorId("y"): ProcessorId("0")}
    machine.feed(replace(model(homes, 2), standbys=of_zero))
    assert (machine.container("x").requested_host, machine.container("y").requested_host) == (
        "d",
        "c",
    )


# --- racks


def racks(**rack: str | None) -> HostsObserved:
    """These hosts in these racks."""
    reports = tuple(HostReport(Host(h), r, 1024, 4, 1024, 4) for h, r in sorted(rack.items()))
    return HostsObserved(tuple(sorted(map(Host, rack))), reports)


def test_another_rack_is_preferred(machine_with: MachineWith) -> None:
    """S18: soft: the standby goes to another rack, though the host in its active's is as empty."""
    for is_preferred, host in ((False, "b"), (True, "c")):
        machine = machine_with(racks_are_preferred=is_preferred)
        machine.feed(job({"0": "a", "0-0": None}))
        machine.feed(racks(a="one", b="one", c="two"))
        assert machine.container("0-0").requested_host == host


def test_racks_may_be_kept_apart_always(machine_with: MachineWith) -> None:
    """S18: hard: a rack counts as a host does; of a host without a known rack nothing is said."""
    machine = machine_with(racks_are_apart=True)
    machine.feed(job({"0": "a", "0-0": "b"}), racks(a="one", b="one"))
    assert machine.phase("0-0") is P.QUEUED
    machine.feed(racks(a="one", b="one", c=None))
    assert machine.container("0-0").requested_host == "c"


# --- questions about one placement


CONTAINER = ContainerState(ProcessorId("0"))


def launcher(name: str, host: Host) -> ResourceState:
    """An idle launcher."""
    return ResourceState(ResourceId(name), host, None)


def test_candidates_are_live_and_untried() -> None:
    """And not drained."""

    def candidates(**changes: Any) -> list[Host]:  # noqa: ANN401 - by field name
        settings = replace(SETTINGS, **changes)
        draft = Draft(replace(initial_state(settings), hosts=(A, B, C)), "")
        found = host_search.Candidates(draft, replace(CONTAINER, tried=(A,)))
        return [host for host in (A, B, C, Host("d")) if host in found]

    assert candidates() == [B, C]
    assert candidates(drained_hosts=frozenset({B})) == [C]


def test_home_is_best_then_the_first_ranked_host_apart_from_the_group() -> None:
    """None where there is no candidate."""
    active = replace(CONTAINER, phase=P.REQUESTED, request_id=RequestId(1), requested_host=C)
    standby = ContainerState(ProcessorId("0-0"), replica_of=CONTAINER.processor_id)
    state = replace(
        initial_state(replace(SETTINGS, racks_are_preferred=True)),
        hosts=(A, B, C),
        racks=Map({A: "one", B: "two", C: "one"}),
        containers=Containers([active, standby]),
    )
    draft = Draft(state, "")
    assert host_search.Candidates(draft, replace(standby, home=A)).best() == A

    def ranked(open_hosts: set[Host]) -> Iterable[Host]:
        return filter(open_hosts.__contains__, draft.ranking.best_first())

    assert host_search.best_host(draft, standby, ranked({A, B})) == B
    assert host_search.best_host(draft, standby, ranked({A, C})) == A
    assert host_search.best_host(draft, standby, ranked(set[Host]())) is None


def test_an_idle_launcher_is_taken_at_home_or_where_home_is_not_requested() -> None:
    """At home always; else on the chosen host, else on the least loaded; never instead of home."""
    at_a, at_b, at_c = launcher("r1", A), launcher("r2", B), launcher("r3", C)
    assert host_search.best_launcher((at_b, at_a), A, A, {}) == at_a
    assert host_search.best_launcher((at_b, at_c), A, A, {}) is None
    assert host_search.best_launcher((at_b, at_c), C, A, {}) == at_c
    assert host_search.best_launcher((at_b, at_c), None, A, {B: 1}) == at_c
    assert host_search.best_launcher((at_b, at_c), A, None, {}) == at_b


# --- whether the job counts as deployed


ACTIVE = ContainerState(ZERO, phase=ContainerPhase.RUNNING, epoch=1)
STANDBY = replace(ACTIVE, processor_id=ProcessorId("0-0"), replica_of=ZERO)


def of(*containers: ContainerState) -> AllocatorState:
    """The state of a job with these containers."""
    return replace(
        initial_state(SETTINGS), phase=JobPhase.ACTIVE, containers=Containers(containers)
    )


def test_a_job_counts_as_deployed_only_when_containers_of_both_roles_run() -> None:
    """Source: STANDBY, "only when all its containers have been successfully deployed"."""
    assert health(of(ACTIVE, STANDBY)) is JobHealth.DEPLOYED
    finished = replace(ACTIVE, phase=ContainerPhase.FINISHED)
    assert health(of(finished, STANDBY)) is JobHealth.DEPLOYED
    waits = replace(STANDBY, phase=ContainerPhase.QUEUED)
    assert health(of(ACTIVE, waits)) is JobHealth.RECOVERING
    assert health(of(ACTIVE, replace(waits, epoch=0))) is JobHealth.DEPLOYING
    assert health(initial_state(SETTINGS)) is JobHealth.DEPLOYING


@pytest.mark.parametrize("lost", [ACTIVE, STANDBY], ids=["active", "standby"])
def test_a_job_that_goes_on_without_a_container_is_degraded(lost: ContainerState) -> None:
    """Of either role: "failures of either type carry equal impact"."""
    other = STANDBY if lost is ACTIVE else ACTIVE
    given_up = replace(lost, phase=ContainerPhase.FAILED)
    assert health(of(given_up, other)) is JobHealth.DEGRADED
