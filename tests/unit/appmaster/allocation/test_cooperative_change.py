"""A container that a model has overtaken works on, and lets go when others can have its tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.cooperative_change import due
from homeport.appmaster.allocation.invariants import check
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import Preparation
from homeport.appmaster.allocation.protocol.events import (
    JobModelPublished,
    ShutdownRequested,
    SparesReported,
    Timer,
    TimerFired,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import (
    FailTasksOver,
    PrepareProcess,
    ReleaseResource,
    StopContainer,
)
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import ProcessorId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    check_in,
    expired,
    inc,
    permits,
    silent,
    stopped,
    stops,
    wants,
)
from tests.unit.appmaster.allocation.test_model_change import GROWN, READY, SHRUNK, change

TWO = ProcessorId("2")
PREPARATION = Timer(TimerKind.PREPARATION, TWO)


@pytest.fixture
def running(machine: Machine) -> Machine:
    """Processors 0 on a and 1 on b run with epoch 1 in resources r0 and r1; c is free."""
    return machine.at_home({"0": "a", "1": "b"}, "c")


def prepares(machine: Machine, *instructions: object) -> bool:
    """Return whether the launcher of processor 2 gets the order, in these instructions."""
    del machine
    return PrepareProcess(ResourceId("r2"), TWO) in instructions


def test_an_owner_works_on_until_the_next_one_is_ready(running: Machine) -> None:
    """Neither YARN's grant nor the start of Python and Spark is a pause of its tasks."""
    running.feed(GROWN)
    assert (running.phase("0"), running.container("0").is_overtaken) == (P.RUNNING, True)
    assert running.feed(check_in("r0", "a", running=inc("0", 1))) == ()
    orders = running.feed(check_in("r2", "a", request=3))
    assert prepares(running, *orders)
    assert running.phases == (P.RUNNING, P.RUNNING, P.ASSIGNED)
    assert PREPARATION in running.state.timers
    assert prepares(running, *running.feed(check_in("r2", "a")))  # again, while it waits
    orders = running.feed(READY)
    assert stops("r0", "0", 1, keeps=True)[0] in orders
    assert PREPARATION not in running.state.timers
    assert running.feed(check_in("r2", "a")) == ()
    running.feed(stopped("0", 1, StopCause.ORDERED, 0))
    assert running.feed(check_in("r2", "a")) == permits("r2", "2", 1, (inc("0", 1),), 2)
    assert running.feed(check_in("r0", "a")) == permits("r0", "0", 3, (inc("0", 1),), 2)
    assert running.container("2").preparation is Preparation.NONE
    assert not running.container("0").keeps_process


def test_a_process_that_is_not_ready_in_time_counts_as_ready(running: Machine) -> None:
    """A container may lack the memory for it, or its launcher be of an older version."""
    running.feed(GROWN, check_in("r2", "a", request=3))
    running.stale(SparesReported({TWO: False}))
    assert running.phase("0") is P.RUNNING
    orders = running.feed(TimerFired(PREPARATION))
    assert stops("r0", "0", 1, keeps=True)[0] in orders


def test_a_launcher_that_is_lost_prepares_nothing(running: Machine) -> None:
    """The owner works on, as if it had not been there."""
    running.feed(GROWN, check_in("r2", "a", request=3), silent("r2"))
    assert running.phases == (P.RUNNING, P.RUNNING, P.REQUESTED)
    assert PREPARATION not in running.state.timers
    orders = running.feed(check_in("r3", "c", request=4))
    assert PrepareProcess(ResourceId("r3"), TWO) in orders


def test_one_that_only_gains_works_on_until_the_owner_has_let_go(running: Machine) -> None:
    """Its own tasks do not stand still while another one commits."""
    orders = running.feed(SHRUNK)
    assert stops("r1", "1", 1, keeps=True)[0] in orders
    assert running.phases == (P.RUNNING, P.STOPPING)
    orders = running.feed(stopped("1", 1, StopCause.ORDERED, 0))
    assert stops("r0", "0", 1, keeps=True)[0] in orders


def test_two_that_exchange_tasks_let_go_at_once(running: Machine) -> None:
    """Each is at hand for the other: neither waits."""
    lists = {"0": (inc("0", 1), inc("1", 1)), "1": (inc("0", 1), inc("1", 1))}
    both = change(2, {"0": "a", "1": "b"}, {"0": (1, 2), "1": (1, 2)}, lists, gainers="01")
    orders = running.feed(both)
    assert {*stops("r0", "0", 1, keeps=True), *stops("r1", "1", 1, keeps=True)} <= set(orders)


def test_one_whose_inputs_alone_change_lets_go_at_once(running: Machine) -> None:
    """No other container waits for its tasks."""
    inputs = change(2, {"0": "a", "1": "b"}, {"0": (1, 2), "1": (1, 1)}, gainers="0")
    assert running.feed(inputs) == stops("r0", "0", 1, keeps=True)


def test_a_process_ends_where_only_its_start_reads_what_changes(running: Machine) -> None:
    """Memory of the JVM, for example; a later change does not keep it either."""
    anew = replace(change(2, {"0": "a", "1": "b"}, {"0": (1, 2)}), is_cooperative=False)
    assert running.feed(anew) == stops("r0", "0", 1)
    again = change(3, {"0": "a", "1": "b"}, {"0": (1, 3)})
    running.feed(again)
    assert running.feed(check_in("r0", "a", running=inc("0", 1))) == stops("r0", "0", 1)


def test_a_process_that_rests_gets_no_permit_after_a_key_of_its_start_has_changed(
    running: Machine,
) -> None:
    """It has the memory of before; its launcher ends it, and the container begins in another."""
    running.feed(GROWN, check_in("r2", "a", request=3), READY)
    running.feed(check_in("r0", "a", running=inc("0", 1)), stopped("0", 1))
    assert running.phase("0") is P.ASSIGNED
    three = change(3, {"0": "a", "1": "b", "2": "a"}, {"0": (1, 3)}, {"0": (inc("0", 1),)})
    orders = running.feed(replace(three, is_cooperative=False))
    assert ReleaseResource(ResourceId("r0")) in orders
    assert running.phase("0") is P.REQUESTED
    assert running.feed(check_in("r0", "a")) == (ReleaseResource(ResourceId("r0")),)


@pytest.mark.parametrize("is_cooperative", [True, False])
def test_the_process_of_a_retired_container_rests_as_others(
    running: Machine, *, is_cooperative: bool
) -> None:
    """Another container may get its launcher."""
    orders = running.feed(replace(SHRUNK, is_cooperative=is_cooperative))
    stop = next(o for o in orders if isinstance(o, StopContainer))
    assert (stop.incarnation, stop.keeps_process) == (inc("1", 1), is_cooperative)


def test_a_taken_back_change_needs_no_new_container(running: Machine) -> None:
    """The owner begins again, as its epoch was raised; what waited for its tasks goes."""
    running.feed(GROWN, check_in("r2", "a", request=3))
    back = change(3, {"0": "a", "1": "b"}, {"0": (1, 3)}, {"0": (inc("0", 1),)}, gainers="0")
    orders = running.feed(back)
    assert stops("r0", "0", 1, keeps=True)[0] in orders
    assert running.state.container(TWO) is None
    assert PREPARATION not in running.state.timers


def test_an_owner_that_dies_meanwhile_begins_under_the_new_model(running: Machine) -> None:
    """Its failure counts as any; the tasks that have moved wait for their next owner."""
    running.feed(GROWN, stopped("0", 1, StopCause.FAILED, 1))
    assert (running.phase("0"), running.container("0").failures) == (P.ASSIGNED, 1)
    assert running.feed(check_in("r0", "a")) == permits("r0", "0", 3, (inc("0", 1),), 2)


def test_what_works_on_stops_with_the_job_and_by_command(running: Machine) -> None:
    """An operator's restart gets another process."""
    running.feed(GROWN, wants("0", "FORCE_RESTART_LAST_SEEN"))
    orders = running.feed(check_in("r0", "a", running=inc("0", 1)))
    assert [o for o in orders if isinstance(o, StopContainer)] == [*stops("r0", "0", 1)]
    running.feed(ShutdownRequested())
    assert running.phase("0") is P.STOPPING


def test_the_next_driver_lets_an_overtaken_one_work_on(machine: Machine) -> None:
    """It finds the change in the stream; processes end, as it does not know what has changed."""
    known: JobModelPublished = replace(
        GROWN, epochs={ProcessorId("0"): 1, ProcessorId("1"): 1}, gainers=frozenset()
    )
    machine.feed(known)
    machine.feed(check_in("r0", "a", running=inc("0", 1), request=1))
    assert machine.phase("0") is P.RUNNING
    machine.feed(check_in("r2", "a", request=3), READY)
    orders = machine.feed(check_in("r0", "a", running=inc("0", 1)))
    assert [o for o in orders if isinstance(o, StopContainer)] == [*stops("r0", "0", 1)]


def test_tasks_of_a_mixed_container_that_cannot_go_home_fail_over_once(
    machine_with: MachineWith,
) -> None:
    """The container goes on to another host; a restart at home fails nothing over."""
    machine = machine_with(mixes_roles=True).at_home({"0": "a", "1": "b"}, "c")
    assert FailTasksOver(ProcessorId("0")) not in machine.feed(stopped("0", 1, StopCause.FAILED))
    machine.run("0", "r0", "a")
    orders = machine.feed(silent("r0"))
    assert orders.count(FailTasksOver(ProcessorId("0"))) == 1
    assert machine.container("0").has_left
    assert FailTasksOver(ProcessorId("0")) not in machine.feed(expired(3))
    moved = replace(
        change(2, {"0": None, "1": "b"}, {"0": (2, 3), "1": (1, 2)}, gainers="1"), is_by_itself=True
    )
    assert stops("r1", "1", 1, keeps=True)[0] in machine.feed(moved)
    machine.feed(check_in("r4", "c", request=4))
    assert not machine.container("0").has_left


def test_a_version_by_itself_forgives_no_failure(running: Machine) -> None:
    """A container that crashes again and again would never be given up."""
    running.feed(stopped("0", 1, StopCause.FAILED, 1))
    again = change(2, {"0": "a", "1": "b"})
    running.feed(replace(again, is_by_itself=True))
    assert running.container("0").failures == 1
    running.feed(replace(again, version=3))
    assert running.container("0").failures == 0


def test_a_gainer_does_not_wait_for_an_owner_that_does_not_run(running: Machine) -> None:
    """There is evidence of its stop: nothing of it has to let go."""
    running.feed(silent("r1"))
    lists = {"0": (inc("0", 1), inc("1", 1)), "1": (inc("1", 1),)}
    taken = change(2, {"0": "a", "1": "b"}, {"0": (1, 2), "1": (1, 2)}, lists, gainers="0")
    assert stops("r0", "0", 1, keeps=True)[0] in running.feed(taken)


def test_only_what_changed_rows_concern_is_looked_at(running: Machine) -> None:
    """A change of thousands of containers is thousands of steps: none may look at all of them."""
    running.feed(GROWN)
    draft, before = Draft(running.state, ""), running.state.containers
    zero, one = (ProcessorId(name) for name in "01")
    assert [c.processor_id for c in due(draft, before, None)] == [zero]
    assert [c.processor_id for c in due(draft, before, {zero})] == [zero]
    assert [c.processor_id for c in due(draft, before, {TWO})] == [zero]
    assert due(draft, before, {one}) == []
    assert due(draft, before, {ProcessorId("gone")}) == []
    taken_back = replace(draft.containers[TWO], unfenced=())
    draft.change(taken_back)
    assert [c.processor_id for c in due(draft, before, draft.containers.changed)] == [zero]
    del draft.containers[TWO]
    assert [c.processor_id for c in due(draft, before, draft.containers.changed)] == [zero]


def test_what_is_placed_for_the_tasks_of_another_prepares_its_process(running: Machine) -> None:
    """Else the owner would work on for good."""
    running.feed(GROWN)
    running.feed(check_in("r2", "a", request=3))
    draft = Draft(running.state, "")
    draft.change(replace(running.container("2"), preparation=Preparation.NONE))
    with pytest.raises(InvariantViolation, match="launcher of processor 2 prepares a process"):
        check(draft.freeze())
