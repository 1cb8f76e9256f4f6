"""HA-YARN, sentence by sentence: what it demands of the allocator. Its words stand first.

Sentences about stores, offset files and the cluster's configuration are in ``ha_yarn.toml``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import (
    HostReport,
    HostsObserved,
    LauncherSilent,
    ResourceEnded,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import RequestResource
from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    asks,
    cancels,
    check_in,
    expired,
    inc,
    live,
    model,
    never_came,
    permits,
    started,
    stopped,
    stops,
)


@pytest.fixture
def running(machine: Machine) -> Machine:
    """0 runs on a, 1 on b; c is empty."""
    machine.deploy({"0": "a", "1": "b"}, "a", "b", "c")
    machine.run("0", "r0", "a", 1)
    machine.run("1", "r1", "b", 2)
    return machine


def test_an_upgraded_job_comes_back_to_its_hosts(
    running: Machine, machine_with: MachineWith
) -> None:
    """An upgraded job comes back to its hosts.

    "When a job is upgraded by pointing yarn.package.path to the new package path and re-submitted."

    The next submission reads from the stream on which host each container ran, and requests it
    there, in whatever order hosts are named.
    """
    ran_on: dict[str, str | None] = {c.processor_id: c.home for c in running.state.containers}
    running.feed(ShutdownRequested())
    again = machine_with()
    assert again.deploy(ran_on, "c", "b", "a") == (*asks(1, "a"), *asks(2, "b"))


def test_a_job_that_yarn_restarts_goes_on_where_it_ran(machine: Machine) -> None:
    """The AM alone was restarted: a container that still runs is adopted, and nothing is requested.

    "When a job is simply restarted by Yarn or the user"
    """
    machine.feed(model({"0": "a", "1": "b"}, p0=3, p1=1))
    machine.feed(check_in("r0", "a", running=inc("0", 3)), check_in("r1", "b", inc("1", 1)))
    assert machine.feed(live("a", "b")) == ()
    assert machine.phases == (P.RUNNING, P.RUNNING)


def test_a_failed_container_is_started_on_its_host(running: Machine) -> None:
    """Where the launcher lives on that host, nothing needs to be requested at all.

    "On a container failure (due to any of the above cited reasons), the AM includes the hostname
    of the expected resource in the ResourceRequest."
    """
    running.feed(stopped("0", 1))
    assert running.feed(check_in("r0", "a")) == permits("r0", "0", 2, (inc("0", 1),))
    running.feed(started("0", 2), ResourceEnded(request_id=RequestId(1)))
    asked = running.feed(ResourceEnded(RequestId(1), ResourceId("r0")))
    assert running.container("0").requested_host == "a"
    assert not [i for i in asked if isinstance(i, RequestResource)]  # it was requested early


@pytest.mark.parametrize("cause", [StopCause.FAILED, StopCause.KILLED, StopCause.SIGNALLED])
def test_a_failure_or_preemption_leads_to_a_new_resource(
    running: Machine, cause: StopCause
) -> None:
    """Home does not answer: the best other host is requested.

    "When a container failure or premption triggers the SamzaAppMaster to re-allocate on another
    available resource"
    """
    running.feed(stopped("0", 1, cause, 143), ResourceEnded(request_id=RequestId(1)))
    assert running.container("0").requested_host == "a"
    assert running.feed(expired(3)) == (*cancels(3), *asks(4, "c"))


def test_the_same_host_is_requested_each_time(machine: Machine) -> None:
    """The same host is requested each time.

    "re-allocate the same host for the container each time the job is restarted, in order to
    re-use the persisted state."
    """
    for version in range(1, 4):
        again = Machine()
        asked = again.deploy({"0": "c", "1": "a"}, "a", "b", "c")
        assert asked == (*asks(1, "c"), *asks(2, "a")), version
    assert machine.deploy({"0": None}, "a", "b") == asks(1, "a")


def test_a_host_is_claimed_by_its_name(machine: Machine) -> None:
    """The request is strict: nothing but that host answers it, until it expires.

    "In order to re-use local state, Samza has to sucessfully claim the specific hosts from the
    Resource Manager (RM)."
    """
    assert machine.deploy({"0": "b"}, "a", "b") == asks(1, "b")
    machine.feed(check_in("r9", "a"))
    assert machine.phase("0") is P.REQUESTED


def test_a_container_that_has_started_has_written_its_locality(machine: Machine) -> None:
    """So the report of the start makes its host home, and nothing before does.

    "To support this, the Samza containers write their locality information to the Coordinator
    Stream every time they start-up successfully."
    """
    machine.deploy({"0": "gone"}, "a")
    machine.feed(check_in("r0", "a", request=1))
    assert machine.container("0").home == "gone"
    machine.feed(started("0", 1))
    assert machine.container("0").home == "a"


def test_the_last_known_host_is_the_one_that_is_requested(running: Machine) -> None:
    """After it has run elsewhere, elsewhere is home.

    "Now, the Samza Application Master (AM) can identify the last known host of a container via
    the Job Coordinator(JC) and the application is no longer agnostic of the container locality."
    """
    running.feed(LauncherSilent(ResourceId("r0")))
    running.run("0", "r9", "c", 3)
    running.feed(ResourceEnded(request_id=RequestId(3)))
    running.feed(ResourceEnded(RequestId(3), ResourceId("r9")))
    assert (running.container("0").home, running.container("0").requested_host) == ("c", "c")


def test_locality_is_relaxed_after_the_configured_delay(machine: Machine) -> None:
    """Locality is relaxed after the configured delay.

    "Hence, the scheduler takes care of relaxing locality after the configured delay."

    Skein's requests are never relaxed, so the allocator does it: the expiry of
    cluster-manager.container.request.timeout.ms, then the best other host, then any.
    """
    assert machine.deploy({"0": "a"}, "a", "b") == asks(1, "a")
    assert machine.feed(expired(1)) == (*cancels(1), *asks(2, "b"))
    assert machine.feed(expired(2)) == (*cancels(2), *asks(3, None))


def test_a_node_that_does_not_run_is_not_waited_for(machine: Machine) -> None:
    """By the document, "it is possible that the requested node is not running"."""
    assert machine.deploy({"0": "gone"}, "a") == asks(1, "a")


def test_a_node_without_room_is_waited_for_once(machine: Machine) -> None:
    """Two at home there: when the one request expires, both go on.

    "or does not have sufficient resources at the time of request (even though the state in the
    data stores may be persisted)"
    """
    machine.deploy({"0": "a", "1": "a"}, "a", "b", "c")
    machine.feed(expired(1))
    assert {c.requested_host for c in machine.state.containers} == {"b", "c"}


def test_stickiness_is_best_effort(running: Machine) -> None:
    """Whatever hosts do, the container is always on its way somewhere.

    "As you have observed, host-affinity cannot be guaranteed all the time due to varibale load
    distribution in the Yarn cluster. Hence, this is a best-effort policy that Samza provides."
    """
    running.feed(LauncherSilent(ResourceId("r0")))
    for request in range(3, 40):
        on_its_way = running.phase("0")
        assert on_its_way is P.REQUESTED
        running.feed(expired(running.container("0").request_id or request))


def test_affinity_is_off_unless_the_job_turns_it_on(machine_with: MachineWith) -> None:
    """Affinity is off unless the job turns it on.

    "Any stateful Samza job can leverage this feature to reduce the Mean Time To Restore (MTTR) of
    its state stores by setting to true. # Default: false"
    """
    job = {"job.name": "j", "job.default.system": "kafka"}
    assert not JobConfig.of(Config(job)).host_affinity_enabled
    on = Config({**job, "job.host-affinity.enabled": "true"})
    assert JobConfig.of(on).host_affinity_enabled
    machine = machine_with(host_affinity_enabled=False)
    assert machine.deploy({"0": "b"}, "a", "b") == asks(1, "a")


def test_a_job_without_state_is_placed_as_before(
    machine: Machine, machine_with: MachineWith
) -> None:
    """Such a job's first deployment asks for the same hosts with affinity and without.

    "Enabling this feature for a stateless Samza job should not have any adverse effect on the
    job."
    """
    without = machine_with(host_affinity_enabled=False)
    homes = dict.fromkeys("0123")
    assert machine.deploy(homes, "a", "b", "c") == without.deploy(homes, "a", "b", "c")
    assert machine.feed(expired(2)) == without.feed(expired(2))
    assert machine.feed(never_came(1)) == without.feed(never_came(1))


def test_racks_do_not_change_host_affinity(machine: Machine, machine_with: MachineWith) -> None:
    """Racks do not change host affinity.

    "The Yarn Rack Awareness feature is not required and does not change the behavior of Samza
    Host Affinity."
    """
    hosts = (Host("a"), Host("b"), Host("c"))
    racks = ("/default-rack", "/one", None)
    reports = tuple(
        HostReport(h, rack, 8192, 8, 8192, 8) for h, rack in zip(hosts, racks, strict=True)
    )
    other, published = machine_with(), model({"0": "c", "1": "a", "2": None})
    without_racks = machine.feed(published, live(*hosts))
    assert other.feed(published, HostsObserved(hosts, reports)) == without_racks
    assert other.state.containers == machine.state.containers


def test_a_changed_count_leaves_unchanged_containers_alone(running: Machine) -> None:
    """0 gives tasks to 2 and starts again where its state is; 1, which keeps its own, runs on.

    "We may be able to re-use local state for a subset of partitions." and "with task-container
    mapping, this will work better for typical container count adjustments."
    """
    wider = model({"0": "a", "1": "b", "2": "c"}, version=2, p0=1, p1=1)
    stated = running.feed(replace(wider, floors={ProcessorId("0"): 2}))
    assert stated == (*stops("r0", "0", 1, keeps=True), *asks(3, "c"))
    running.feed(stopped("0", 1, StopCause.ORDERED, 0))
    assert running.container("0").resource_id == "r0"
    assert (running.phase("1"), running.container("1").epoch) == (P.RUNNING, 1)
