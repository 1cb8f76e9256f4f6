"""STANDBY, parts 2 and 3, sentence by sentence: what they demand of the allocator.

Parts 1 and 4, and what others prove, are in ``standby.toml``.
"""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import LauncherSilent, ResourceEnded
from homeport.appmaster.allocation.protocol.instructions import (
    DeleteLocality,
    EndJob,
    JobResult,
    StopContainer,
    WriteFailover,
    WriteLocality,
)
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.appmaster.report.job_status import JobHealth, health
from homeport.job_coordinator.model.ids import ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.spec.pairs import asked, group, loses_launcher, request_of, running
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    asks,
    check_in,
    expired,
    inc,
    live,
    permits,
    started,
    stopped,
    stops,
)


@pytest.fixture
def pair(machine: Machine) -> Machine:
    """0 runs on a, its standby 0-0 on b; c is empty."""
    return running(machine, {"0": "a", "0-0": "b"}, "c")


def _home_expires(machine: Machine) -> None:
    """0 is lost with its launcher, asks for home, and does not get it."""
    machine.feed(loses_launcher("0"))
    assert machine.container("0").requested_host == "a"
    machine.feed(expired(request_of(machine, "0")))


# --- part 2


def test_a_group_is_never_on_one_host(machine: Machine) -> None:
    """Whatever launchers come, on whatever host, in whatever order.

    "Invariant-1: An active and its corresponding standby task/container should not be on the same
    host."
    """
    machine.feed(group({"0": "a", "0-0": "a", "0-1": "a"}), live("a", "b", "c"))
    for number, host in enumerate("aaabbbccc"):
        machine.feed(check_in(f"r{number}", host))
    hosts = [machine.state.resources.get(c.resource_id).host for c in machine.state.containers]  # type: ignore[union-attr] # all hold one
    assert sorted(hosts) == ["a", "b", "c"]


def test_an_active_starts_after_its_standby_has_stopped(pair: Machine) -> None:
    """The launcher that is to run the active may ask as often as it likes.

    "Invariant-2: An active task/container should be started only after its corresponding standby
    has been successfully stopped."
    """
    _home_expires(pair)
    assert pair.phase("0") is P.FAILING_OVER
    for _ in range(3):
        stated = pair.feed(check_in("r-0-0", "b", running=inc("0-0", 1)))
        assert stated == stops("r-0-0", "0-0", 1)
    pair.feed(stopped("0-0", 1, StopCause.ORDERED, 0))
    assert pair.feed(check_in("r-0-0", "b")) == permits("r-0-0", "0", 2, (inc("0", 1),))


def test_standbys_are_containers_like_any_other(machine: Machine) -> None:
    """Standbys are containers like any other.

    "The standby containers are assigned YARN containerIDs just like active containers."
    """
    machine.feed(group({"0": "a", "0-0": "b"}), live("a", "b"))
    stated = machine.feed(check_in("r1", "b", request=2))
    assert stated[-1:] == permits("r1", "0-0", 1)
    assert machine.records[-1].processor_id == "0-0"  # type: ignore[union-attr] # an epoch's record


def test_standbys_come_home_too(machine: Machine) -> None:
    """Standbys come home too.

    "The hot-standby containers work with and benefit with host-affinity just like active
    containers."
    """
    stated = machine.feed(group({"0": "c", "0-0": "b"}), live("a", "b", "c"))
    assert stated == (*asks(1, "c"), *asks(2, "b"))


def test_the_job_is_deployed_when_both_roles_run(machine: Machine) -> None:
    """The job is deployed when both roles run.

    "a job is considered deployed only when all its containers have been successfully deployed."
    """
    machine.feed(group({"0": "a", "0-0": "b"}), live("a", "b"))
    machine.run("0", "r0", "a", 1)
    assert health(machine.state) is JobHealth.DEPLOYING
    machine.run("0-0", "r1", "b", 2)
    assert health(machine.state) is JobHealth.DEPLOYED


@pytest.mark.parametrize(("processor", "host"), [("0", "a"), ("0-0", "b")])
def test_failures_of_either_role_end_the_job_alike(
    machine_with: MachineWith, processor: str, host: str
) -> None:
    """Failures of either role end the job alike.

    "Failures of either type of container carry equal impact to the"
    """
    machine = running(machine_with(retry_count=1), {"0": "a", "0-0": "b"})
    other = "0-0" if processor == "0" else "0"
    machine.feed(stopped(processor, 1), check_in(f"r-{processor}", host), started(processor, 2))
    assert machine.container(processor).failures == 1
    machine.feed(stopped(processor, 2))
    end = machine.feed(stopped(other, 1, StopCause.ORDERED, 0))
    assert [i.result for i in end if isinstance(i, EndJob)] == [JobResult.FAILED]


def test_a_job_that_adopts_standbys_brings_its_actives_home(machine: Machine) -> None:
    """A job that adopts standbys brings its actives home.

    "An existing job that adopts this feature, will have preferred-hosts for its existing stateful
    active containers. Such jobs, will not however have a preferred-host for standby containers on
    the very first deploy."
    """
    homes = {"0": "b", "0-0": None, "1": "a", "1-0": None}
    stated = machine.feed(group(homes, version=2, p0=4, p1=2), live("a", "b", "c"))
    assert asked(stated)[:2] == ["b", "a"]
    assert {machine.container(p).home for p in ("0-0", "1-0")} == {None}


def test_preferred_host_comes_before_any_host(machine: Machine) -> None:
    """Preferred host comes before any host.

    "The ContainerProcessManager issues allocation requests for all active and standby containers,
    using the existing preferredHost-over-anyHost semantics."
    """
    machine.feed(group({"0": "a", "0-0": "b"}), live("a", "b", "c"))
    assert asked(machine.feed(expired(2))) == ["c"]
    assert asked(machine.feed(expired(1))) == ["b"]
    assert asked(Machine().feed(group({"0": "a", "0-0": "b"}), live())) == [None, None]


def test_a_launcher_is_matched_by_the_same_host_check(machine: Machine) -> None:
    """The launcher that came of the standby's request, on the active's host, is not for it.

    "When trying to match a container resource request to an allocated resource, the
    ContainerAllocator, ensures that corresponding active and standby containers are not on the
    same host (we call this the same-host-check)"
    """
    machine.feed(group({"0": "a", "0-0": "b"}), live("a", "b"))
    machine.run("0", "r0", "a", 1)
    machine.feed(check_in("r1", "a", request=2))
    assert machine.phase("0-0") is P.REQUESTED
    assert machine.container("0-0").requested_host == "b"


def test_a_first_deployment_places_standbys_anywhere_else(machine: Machine) -> None:
    """A first deployment places standbys anywhere else.

    "Note that, on the first-deploy the standby containers will not have any PreferredHosts in the
    locality mapping and hence all requests for them will be AnyHost requests."

    Here any host means the best other host, by name, that has none of the group; without a known
    one, any.
    """
    stated = machine.feed(group(dict.fromkeys(("0", "0-0"))), live("a", "b"))
    assert asked(stated) == ["a", "b"]
    assert asked(Machine().feed(group(dict.fromkeys(("0", "0-0"))), live())) == [None, None]


# --- part 3, A: failure of an active container


def test_the_job_model_distinguishes_the_roles(pair: Machine) -> None:
    """The same end of the same kind of launcher: the active is failed over, the standby is not.

    "The ContainerProcessManager can differentiate these scenarios using the JobModel."
    """
    _home_expires(pair)
    assert pair.container("0").failover is not None
    other = running(Machine(), {"0": "a", "0-0": "b"}, "c")
    other.feed(loses_launcher("0-0"), expired(3))
    assert other.container("0-0").failover is None
    assert other.phase("0") is P.RUNNING


def test_an_active_is_requested_where_it_was_last_seen(pair: Machine) -> None:
    """An active is requested where it was last seen.

    "The ContainerProcessManager will request a container allocation on the same host on which the
    active container was last seen. If the same host is granted, container will be re-spawned --
    problem solved, return."
    """
    assert asked(pair.feed(loses_launcher("0"))) == ["a"]
    pair.run("0", "r9", "a", request_of(pair, "0"))
    assert pair.phase("0-0") is P.RUNNING
    assert not [r for r in pair.records if isinstance(r, WriteFailover)]


def test_without_its_host_the_request_expires(pair: Machine) -> None:
    """Without its host the request expires.

    "If a container on the same host is not granted because the host is either out of capacity or
    unreachable due to a network partition or dead. In this case the resource request will"
    """
    _home_expires(pair)
    assert [type(r) for r in pair.records[-3:]] == [WriteFailover, DeleteLocality, WriteLocality]


def test_a_host_that_is_known_to_be_dead_is_not_waited_for(pair: Machine) -> None:
    """Its launchers fell silent: the failover begins in that step.

    "unreachable due to a network partition or dead"
    """
    pair.feed(LauncherSilent(ResourceId("r-0")))
    assert pair.phase("0") is P.FAILING_OVER


def test_the_standbys_host_is_where_the_active_goes(pair: Machine) -> None:
    """The standbys host is where the active goes.

    "The ContainerProcessManager will then use the localityMappings to determine the standby host
    (the host of the corresponding standby container)."
    """
    _home_expires(pair)
    under_way = pair.container("0").failover
    assert under_way is not None
    assert (under_way.standby, under_way.host) == ("0-0", "b")


def test_the_standbys_locality_is_deleted(pair: Machine) -> None:
    """The standbys locality is deleted.

    "It will delete the localityMapping of the standby container, by writing to the metadataStore
    (using localityManager.writeMapping)."
    """
    _home_expires(pair)
    assert DeleteLocality(ProcessorId("0-0")) in pair.records


def test_the_actives_locality_points_to_the_standbys_host(pair: Machine) -> None:
    """The actives locality points to the standbys host.

    "It will update the localityMapping of the active container to point to the standby host."
    """
    _home_expires(pair)
    written = [r for r in pair.records if isinstance(r, WriteLocality)]
    assert [(r.processor_id, r.host) for r in written] == [("0", "b")]
    assert pair.container("0").home == "b"


def test_the_standby_is_stopped(pair: Machine) -> None:
    """Together with the records, which are written first.

    "It will stop the standby container using nmClientAsync.stopContainerAsync"
    """
    pair.feed(loses_launcher("0"))
    decision = pair.decide(expired(request_of(pair, "0")))
    assert [r for r in decision.records if isinstance(r, WriteFailover)]
    assert StopContainer(ResourceId("r-0-0"), inc("0-0", 1)) in decision.instructions


def test_no_other_container_waits_for_the_stop_or_for_the_resource(machine: Machine) -> None:
    """Neither order has an answer: meanwhile 1 fails, and its launcher runs it again at once.

    "This is an async-call."
    """
    running(machine, {"0": "a", "0-0": "b", "1": "c"})
    _home_expires(machine)
    machine.feed(stopped("1", 1))
    assert machine.feed(check_in("r-1", "c")) == permits("r-1", "1", 2, (inc("1", 1),))
    assert (machine.phase("0"), machine.phase("0-0")) == (P.FAILING_OVER, P.STOPPING)
    machine.feed(loses_launcher("0-0"), started("1", 2))
    assert (machine.phase("0"), machine.phase("1")) == (P.REQUESTED, P.RUNNING)


def test_both_are_never_started_on_the_host_at_once(pair: Machine) -> None:
    """Another launcher on that host is not the active's either, as long as the standby may run.

    "This is required because standby and active containers cannot be started simultaneously on
    the same host (since only one of them can lock the statedir)."
    """
    _home_expires(pair)
    pair.feed(check_in("r9", "b"))
    assert pair.phase("0") is P.FAILING_OVER


def test_the_standbys_host_is_requested_by_name(pair: Machine) -> None:
    """Where the standby's launcher is gone as well; else that launcher is the active's at once.

    "The ContainerProcessManager will then make a PreferredHost request to place the active
    container on the standby host."
    """
    _home_expires(pair)
    stated = pair.feed(loses_launcher("0-0"))
    assert (pair.phase("0"), pair.container("0").requested_host) == (P.REQUESTED, "b")
    assert "b" in asked(stated)


def test_the_active_starts_when_stop_and_resource_are_both_there(pair: Machine) -> None:
    """The active starts when stop and resource are both there.

    "Once the ContainerProcessManager receives callbacks signalling the completion of both step 5
    and step 6, it will then make a nmClientAsync.startContainer to start the active container on
    the standby host."

    YARN's word that the standby's container ended lets the host be asked for early; the launcher
    that comes of it waits for the evidence of the stop.
    """
    _home_expires(pair)
    standbys_own = pair.state.resources.get(ResourceId("r-0-0"))
    assert standbys_own is not None
    early = pair.feed(ResourceEnded(request_id=standbys_own.request_id))
    assert asked(early) == ["b"]
    pair.feed(check_in("r9", "b", request=4))
    assert pair.phase("0") is P.FAILING_OVER
    pair.feed(loses_launcher("0-0"))
    assert pair.container("0").resource_id == "r9"
    assert pair.feed(check_in("r9", "b")) == permits("r9", "0", 2, (inc("0", 1),))


def test_stops_that_were_ordered_are_kept_track_of(pair: Machine) -> None:
    """Stops that were ordered are kept track of.

    "To ensure Step 5 has completed, the ContainerAllocator/ContainerProcessManager will keep
    track of all container-stop requests it has issued and their progress."

    The standby is STOPPING until there is evidence; the order comes again at each check-in; a
    stop that is not confirmed in time leads to the next choice.
    """
    _home_expires(pair)
    assert pair.phase("0-0") is P.STOPPING
    assert [str(t) for t in pair.state.timers if "standby-stop" in str(t)] == ["standby-stop:0"]
    assert pair.feed(check_in("r-0-0", "b", running=inc("0-0", 1))) == stops("r-0-0", "0-0", 1)


def test_the_standby_is_placed_on_another_host(pair: Machine) -> None:
    """The standby is placed on another host.

    "it will not find a hostMapping for the standby container, in which case it will make a
    AnyHost request to place the standby container on any host."
    """
    _home_expires(pair)
    stated = pair.feed(stopped("0-0", 1, StopCause.ORDERED, 0))
    assert pair.container("0-0").home is None
    (host,) = asked(stated)
    assert host in {"a", "c"}
    assert pair.container("0-0").failures == 0


def test_a_backup_is_stopped_before_the_active_starts(pair: Machine) -> None:
    """What YARN says of the standby's container is no evidence that it has stopped.

    "Invariant: An active container should be started only after its corresponding backup has been
    stopped."
    """
    _home_expires(pair)
    pair.feed(ResourceEnded(request_id=RequestId(2)))
    assert pair.phase("0") is P.FAILING_OVER


# --- part 3, B: failure of a standby container


def test_a_standby_is_requested_where_it_was_last_seen(pair: Machine) -> None:
    """A standby is requested where it was last seen.

    "The ContainerProcessManager will request a container allocation on the same host on which the
    standby container was last seen."
    """
    assert asked(pair.feed(loses_launcher("0-0"))) == ["b"]
    assert pair.phase("0") is P.RUNNING


def test_a_standby_goes_to_any_host_that_passes_the_check(pair: Machine) -> None:
    """A standby goes to any host that passes the check.

    "If a container on the same host is not granted, the ContainerProcessManager will make an
    AnyHost request, once that is granted, the standby container will be started on the host if it
    passes Invariant1 above."
    """
    pair.feed(loses_launcher("0-0"))
    assert asked(pair.feed(expired(request_of(pair, "0-0")))) == ["c"]
    pair.feed(check_in("r8", "a"))
    assert pair.phase("0-0") is P.REQUESTED
    pair.run("0-0", "r9", "c", request_of(pair, "0-0"))
    assert pair.phase("0-0") is P.RUNNING


# --- metrics


def test_failovers_to_standbys_are_reported(pair: Machine) -> None:
    """A reason of its own kind, which the metrics count.

    "#Active to standby container failovers"
    """
    decision = pair.decide(LauncherSilent(ResourceId("r-0")))
    assert ReasonKind.FAILOVER_TO_STANDBY in {r.kind for r in decision.reasons}


def test_an_active_that_could_not_be_failed_to_a_standby_is_reported(machine: Machine) -> None:
    """An active that could not be failed to a standby is reported.

    "#Occurrences where an active container could not be failed to a standby."
    """
    machine.feed(group({"0": "a", "0-0": None}), live("a", "b"))
    machine.run("0", "r-0", "a", 1)
    decision = machine.decide(LauncherSilent(ResourceId("r-0")))
    assert ReasonKind.FAILOVER_TO_NOBODY in {r.kind for r in decision.reasons}
    assert (machine.phase("0"), machine.container("0").requested_host) == (P.REQUESTED, "b")


@pytest.mark.parametrize(("processor", "host"), [("0", "a"), ("0-0", "b")])
def test_failures_are_reported_by_role(pair: Machine, processor: str, host: str) -> None:
    """The reason names the processor, whose role the JobModel knows.

    "#Active and #standby container failures"
    """
    decision = pair.decide(stopped(processor, 1))
    charged = [r for r in decision.reasons if r.kind is ReasonKind.CHARGED]
    assert [r.processor_id for r in charged] == [processor]
    assert host in str(charged[0])
