"""An operator's commands that cannot be carried out, and what goes wrong on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import JobPhase, expiry_timer
from homeport.appmaster.allocation.protocol.events import (
    Event,
    HostReport,
    HostsObserved,
    LauncherSilent,
    PlacementRequested,
    ResourceEnded,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    ReleaseResource,
    SetTimer,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    FORCE_RESTART_LAST_SEEN,
    PlacementRequest,
)
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    allocated,
    asks,
    check_in,
    expired,
    model,
    never_came,
    stopped,
)
from tests.unit.appmaster.allocation.placement_words import (
    BAD,
    BEGUN,
    DONE,
    FAILED,
    HOSTS,
    answers,
    asked,
    orders,
    running,
    said,
    settled,
    taken,
    wants,
)


def test_c3_an_expiry_leaves_the_container_untouched(machine: Machine) -> None:
    """C3: 10 ms, and the host never delivers: FAILED; a running container goes on."""
    running(machine)
    timer = SetTimer(expiry_timer(RequestId(3)), 10)
    assert machine.feed(wants(expiry=10)) == (*asks(3, "h3")[:1], timer)
    assert orders(machine.feed(expired(3))) == [CancelRequest(RequestId(3))]
    assert answers(machine) == [BEGUN, FAILED]
    assert said(machine) == "no launcher came on h3: the request was not granted in time"
    assert [settled(machine, p) for p in "01"] == [("h1", P.RUNNING), ("h2", P.RUNNING)]
    assert (len(machine.state.early), machine.state.placements) == (0, ())


@pytest.mark.parametrize(
    ("ending", "story"),
    [
        ((allocated(3), never_came(3)), "its launcher did not check in in time"),
        ((ResourceEnded(RequestId(3), story="no room"),), "no room"),
        ((ResourceEnded(RequestId(3)),), "its container has ended"),
    ],
    ids=["never came", "refused", "ended"],
)
def test_a_reservation_without_a_launcher_fails(
    machine: Machine, ending: tuple[Event, ...], story: str
) -> None:
    """Why is said; the container runs on, and nothing is charged."""
    running(machine).feed(wants(), *ending)
    assert answers(machine) == [BEGUN, FAILED]
    assert story in said(machine)
    assert settled(machine, "0") == ("h1", P.RUNNING)
    assert machine.container("0").failures == 0


def _launching(machine: Machine) -> Machine:
    """0 has been permitted on h3 and is starting."""
    running(machine).feed(wants(), check_in("r3", "h3", request=3))
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143), check_in("r3", "h3"))
    assert settled(machine, "0") == ("h3", P.STARTING)
    return machine


def test_c4_a_launch_that_fails_leads_back_to_the_source(machine: Machine) -> None:
    """C4: the start on h3 fails: 0 goes back to h1; preferred 4, FAILED; nothing is charged."""
    _launching(machine)
    stated = machine.feed(stopped("0", 2))
    assert orders(stated) == [ReleaseResource(ResourceId("r3")), asks(4, "h1")[0]]
    assert answers(machine)[-1] is FAILED
    assert "its start on h3 failed: 0@2 on h3: failed, exit code 1" in said(machine)
    machine.feed(ResourceEnded(resource_id=ResourceId("r3")))
    machine.run("0", "r4", "h1", 4)
    assert settled(machine, "0") == ("h1", P.RUNNING)
    assert machine.container("0").failures == 0


@pytest.mark.parametrize(
    "loss",
    [
        ResourceEnded(resource_id=ResourceId("r3"), story="memory", is_own_fault=True),
        LauncherSilent(ResourceId("r3")),
    ],
    ids=["ended", "silent"],
)
def test_a_launcher_lost_at_the_start_leads_back_to_the_source(
    machine: Machine, loss: Event
) -> None:
    """C4 by other means: YARN ended it, or its host fell silent."""
    stated = _launching(machine).feed(loss)
    assert asks(4, "h1")[0] in stated
    assert answers(machine)[-1] is FAILED
    assert machine.container("0").failures == 0


def test_a_launcher_lost_before_its_permit_leads_back_to_the_source(machine: Machine) -> None:
    """It was assigned, and died before it polled again."""
    running(machine).feed(wants(), check_in("r3", "h3", request=3))
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert settled(machine, "0") == ("h3", P.ASSIGNED)
    stated = machine.feed(ResourceEnded(resource_id=ResourceId("r3")))
    assert asks(4, "h1")[0] in stated
    assert answers(machine)[-1] is FAILED


def test_a_reserved_launcher_that_is_lost_while_the_container_stops(machine: Machine) -> None:
    """FAILED at once; the container comes back on the launcher that it had, which was kept."""
    running(machine).feed(wants(), check_in("r3", "h3", request=3))
    assert settled(machine, "0") == ("h1", P.STOPPING)
    machine.feed(LauncherSilent(ResourceId("r3")))
    assert answers(machine)[-1] is FAILED
    assert said(machine) == "its launcher on h3 was lost"
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    machine.run("0", "r1", "h1")
    assert settled(machine, "0") == ("h1", P.RUNNING)


def test_a_restart_that_is_given_up_fails(machine_with: MachineWith) -> None:
    """What is charged while it starts is charged as ever."""
    machine = running(machine_with(retry_count=0, fail_job_after_retries=False))
    machine.feed(wants(to=FORCE_RESTART_LAST_SEEN), stopped("0", 1, StopCause.ORDERED, 143))
    machine.feed(check_in("r1", "h1"), stopped("0", 2))
    assert answers(machine) == [BEGUN, FAILED]
    assert "0@2 on h1: failed" in said(machine)


def test_where_no_host_can_be_requested_any_is_a_bad_request(machine_with: MachineWith) -> None:
    """As where all hosts joined after the submission."""
    machine = machine_with(strict_hosts=())
    machine.deploy({"0": "h1"}, "h1")
    machine.run("0", "r1", "h1", 1)
    machine.feed(wants(to=ANY_HOST))
    assert (answers(machine), said(machine)) == ([BAD], "no host can be asked for it")


@pytest.mark.parametrize(
    ("request_", "story"),
    [
        (asked("7"), "the job has no processor '7': it has 0, 1"),
        (asked(""), "the job has no processor ''"),
        (asked(to="nowhere"), "'nowhere' is no live host: live are h1, h2, h3, h4"),
        (asked(to=""), "is no live host"),
        (asked(to="h4"), "h4 joined after the job was submitted"),
        (asked(expiry=0), "from 1 to 86400000 ms"),
        (asked(expiry=86_400_001), "from 1 to 86400000 ms"),
        (asked(expiry=10**400), "from 1 to 86400000 ms"),
    ],
    ids=str,
)
def test_a_bad_request_is_answered_at_once(
    machine_with: MachineWith, request_: PlacementRequest, story: str
) -> None:
    """C7, and unknown processors, which Samza never answers: nothing is done."""
    machine = machine_with(strict_hosts=tuple(Host(h) for h in HOSTS[:3]))
    assert running(machine).feed(PlacementRequested(request_)) == ()
    assert answers(machine) == [BAD]
    assert story in said(machine)
    assert taken(machine) == ["u1"]


def test_an_answer_counts_the_names_that_it_omits(machine: Machine) -> None:
    """An answer is one line."""
    machine.deploy({str(n): None for n in range(30)}, *(f"h{n}" for n in range(30)))
    machine.feed(wants("x"), wants("0", "x", uuid="u2"))
    assert said(machine) == "the job has no processor 'x': it has 30 others"
    assert said(machine, "u2") == "'x' is no live host: live are 30 others"


def test_an_excluded_host_is_a_bad_destination(machine: Machine) -> None:
    """Its only launcher fell silent; a reservation that is outstanding there fails."""
    running(machine, "h1", "h2", "h3")
    machine.feed(wants(to="h3"))
    machine.feed(LauncherSilent(ResourceId("r3")))
    assert (answers(machine)[-1], said(machine)) == (
        FAILED,
        "h3 has fallen silent: it is not asked",
    )
    machine.feed(wants(to="h3", uuid="u2"))
    assert answers(machine, "u2") == [BAD]


def test_a_host_that_is_too_small_is_a_bad_destination(machine_with: MachineWith) -> None:
    """A request for more than any host has would end Skein's AM: one that is outstanding fails."""
    machine = running(machine_with(container_memory_mb=1000, container_cores=1))
    rooms = dict.fromkeys(HOSTS, 2000)
    machine.feed(_observed({**rooms, "h4": 500}), wants(to="h4"))
    assert (answers(machine), said(machine)) == ([BAD], "h4 is too small for a container")
    machine.feed(_observed({**rooms, "h3": 1000}), wants(to=ANY_HOST, uuid="u2"))
    assert [e.host for e in machine.state.early] == ["h4"]
    machine.feed(_observed(dict.fromkeys(HOSTS, 500)))
    assert (answers(machine, "u2"), len(machine.state.early)) == ([BEGUN, FAILED], 0)


def _observed(memory_mb: dict[str, int]) -> HostsObserved:
    """Hosts of so much memory, of which 1000 MB are in use on h3."""
    hosts = tuple(Host(h) for h in memory_mb)
    free = {h: mb - 1000 * (h == "h3") for h, mb in memory_mb.items()}
    reports = (HostReport(Host(h), None, mb, 8, free[h], 8) for h, mb in memory_mb.items())
    return HostsObserved(hosts, tuple(reports))


def test_a_model_change_in_a_move_is_followed(machine: Machine) -> None:
    """0 stops for the version, which moves it, and starts on the reserved launcher."""
    running(machine).feed(wants())
    machine.feed(replace(model({"0": "h1", "1": "h2"}, version=2), floors={ProcessorId("0"): 2}))
    assert machine.phase("0") is P.STOPPING
    machine.feed(check_in("r3", "h3", request=3))
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert settled(machine, "0") == ("h3", P.ASSIGNED)
    machine.run("0", "r3", "h3")
    assert (answers(machine)[-1], said(machine)) == (DONE, "0@3 runs on h3")


def test_the_jobs_end_answers_all(machine: Machine) -> None:
    """FAILED, in every step; also for later requests."""
    running(machine).feed(wants(), wants(to="h4", uuid="u2", at=2))
    machine.feed(wants("1", "h4", uuid="u3"), check_in("r3", "h3", request=3))
    stated = machine.feed(ShutdownRequested())
    assert ReleaseResource(ResourceId("r3")) in stated
    assert [answers(machine, u)[-1] for u in ("u1", "u2", "u3")] == [FAILED] * 3
    assert said(machine) == "the job ends"
    machine.feed(wants(uuid="u4"))
    assert (machine.state.phase, answers(machine, "u4")) == (JobPhase.ENDING, [FAILED])
