"""When standbys of mixed containers are dealt, and when lost tasks go to them."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    Resources,
    ResourceState,
)
from homeport.appmaster.job_model.mixed_roles import QUIET_S, Due, MixedRoles, places_of, with_tasks
from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.mixed_failover import Failover, failed_over
from homeport.job_coordinator.grouper.mixed_standbys import NOWHERE, Places
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import ShownTakenOver
from tests.unit.appmaster.allocation.conftest import SETTINGS

MIXED = {
    "job.name": "j",
    "job.default.system": "kafka",
    "job.container.mixed-roles": "true",
    "job.hotstandby.enabled": "true",
    "job.hotstandby.replicationcount": "1",
    "job.container.count": "3",
    "task.class": "m:C",
    "task.inputs": "kafka.in",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.c",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "string",
}
P0, P1, P2 = (ProcessorId(str(n)) for n in range(3))
NONE: frozenset[ProcessorId] = frozenset()


def at(**hosts: str) -> Places:
    """Containers by number, each with its host."""
    return Places({ProcessorId(p.removeprefix("p")): Host(h) for p, h in hosts.items()})


def found(lost: int = 0, unbacked: int = 0) -> Failover:
    """A JobModel that was computed."""
    return Failover(JobModel(Config({}), {}), lost, unbacked)


ONE, TWO = at(p0="a"), at(p0="a", p1="b")


def test_standbys_are_dealt_once_the_containers_stay_where_they_are() -> None:
    """At a submission they come one after the other; for the same places nothing is due again."""
    roles = MixedRoles()
    assert roles.due(NOWHERE, 0.0, 2) is None
    assert roles.due(ONE, 1.0, 2) is None
    assert roles.due(TWO, 1.0 + QUIET_S / 2, 2) is None
    assert roles.due(TWO, 1.0 + QUIET_S, 2) is None
    due = roles.due(TWO, 1.0 + QUIET_S * 1.5, 2)
    assert due == Due(NONE, TWO)
    assert due.why(found()) == "standbys are dealt where containers run"
    roles.done(due, found(), 2)
    assert roles.due(TWO, 100.0, 2) is None
    assert roles.due(ONE, 100.0, 2) is None
    assert roles.due(TWO, 100.2, 2) is None, "a restart on its host moves nothing"


def test_containers_that_never_stay_do_not_put_it_off_for_ever() -> None:
    """One that crashes again and again comes and goes."""
    roles = MixedRoles()
    dues = [roles.due((ONE, TWO)[turn % 2], turn * QUIET_S / 2, 2) for turn in range(40)]
    assert dues[10] is None
    assert any(dues[20:30])


def test_a_deal_waits_for_containers_that_have_no_place_yet() -> None:
    """Standbys stay where they are dealt; ten seconds later those that are there are enough."""
    roles = MixedRoles()
    assert roles.due(TWO, 1.0, 3) is None
    assert roles.due(TWO, 10.9, 3) is None
    assert roles.due(TWO, 11.0, 3) == Due(NONE, TWO)
    three = at(p0="a", p1="b", p2="c")
    assert roles.due(three, 12.0, 3) == Due(NONE, three)
    again = MixedRoles()
    assert again.due(three, 1.0, 3) is None
    assert again.due(three, 1.0 + QUIET_S, 3) == Due(NONE, three)


def test_what_is_lost_goes_at_once() -> None:
    """To the places of the others; it is counted, and due until it is done."""
    roles = MixedRoles()
    roles.done(Due(NONE, TWO), found(), 2)
    roles.lost(P1)
    due = roles.due(TWO, 5.0, 2)
    assert due == Due(frozenset({P1}), ONE)
    assert roles.due(TWO, 5.0, 2) == due
    roles.lost(P2)
    text = "containers 1 cannot go home: 3 tasks go to others, 1 of them without a standby"
    assert due.why(found(3, 1)) == text
    roles.done(due, found(3, 1), 4)
    assert roles.taken_over == ShownTakenOver(lost=3, unbacked=1, version=4)
    again = roles.due(TWO, 5.0, 2)
    assert again is not None
    assert again.lost == {P2}


def test_an_outlook_has_where_the_tasks_of_lost_containers_go() -> None:
    """To the standbys that are left; the others are counted."""
    places = at(p0="a", p1="b", p2="c")
    model = calculate_job_model(
        Config(MIXED),
        {SystemStream("kafka", "in"): 6},
        replace(NOTHING, processor_hosts=places.hosts),
    )
    dealt = failed_over(model, [], places).model
    outlook = ShownOutlook(
        hosts=(Host("a"),),
        containers=(),
        unplaced=(),
        notes=(),
        shortage=None,
        suspects_itself=False,
        job="active",
        is_settled=True,
    )
    assert with_tasks(outlook, dealt, places) is outlook
    lost = with_tasks(structs.replace(outlook, tasks_moved={P0: {}}), dealt, places)
    assert (lost.tasks_moved, lost.unbacked) == ({P0: {P1: 1, P2: 1}}, 0)
    both = structs.replace(outlook, hosts=(Host("a"), Host("b")), tasks_moved={P0: {}, P1: {}})
    of_two = with_tasks(both, dealt, places)
    assert of_two.tasks_moved == {P0: {P2: 2}, P1: {P2: 2}}
    assert of_two.unbacked == failed_over(dealt, (P0, P1), at(p2="c")).unbacked > 0
    everywhere = structs.replace(both, hosts=tuple(map(Host, "abc")))
    assert with_tasks(everywhere, dealt, places).tasks_moved == {P0: {}, P1: {}}


def test_places_are_those_of_containers_of_the_model() -> None:
    """One without a launcher has none, nor has one that is retired."""
    r0, r1 = (ResourceState(ResourceId(f"r{n}"), Host("ab"[n]), RequestId(n)) for n in range(2))
    containers = (
        ContainerState(P0, phase=ContainerPhase.RUNNING, resource_id=r0.resource_id),
        ContainerState(P1, phase=ContainerPhase.STOPPING, resource_id=r1.resource_id),
        ContainerState(P2),
    )
    containers = (containers[0], replace(containers[1], is_retired=True), containers[2])
    state = AllocatorState(
        SETTINGS, containers=Containers(containers), resources=Resources((r0, r1))
    )
    assert places_of(state).hosts == at(p0="a").hosts
