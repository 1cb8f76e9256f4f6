"""Hosts that are lost, each in several ways: scenarios written once, for every kind of cluster.

The job is fed all the while. The host stays lost until the job works around it, then comes back.
After each way all is calm (``Scenario.is_calm``), and the end is good (``Scenario.ends_well``).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from am_attempts import page_of
from failover_scenarios import Containers, Moment, Scenario, counted, more_than
from small_disk import fill
from yarn_jobs import Job, alive, parent_of, pids_of, wait_for

from homeport.config.errors import UnavailableError
from homeport.job_coordinator.model.outcomes import RestoreKind
from tests.faults import Faults

Announce = Callable[[str], None]
Meanwhile = Callable[[Scenario, Sequence[int], str], None]
"""What else happens before the host comes back: scenario, the pids of its stream containers, host.
"""

TAIL = {RestoreKind.NONE.value, RestoreKind.TAIL.value}
WAYS: Mapping[str, Callable[[Faults, str], object]] = {
    "kill": lambda faults, place: faults.kill(place),
    "pause": lambda faults, place: faults.pause(place),
    "cut": lambda faults, place: faults.cut(place),
    "one-way": lambda faults, place: faults.cut_one_way(place, "all"),
    "disconnect": lambda faults, place: faults.disconnect(place),
}
"""How a host is lost. One way: it hears all others, and none hears it."""
_COUNTED = 200
"""So many more records are counted while what is lost must not matter."""
_RM_DEAD_S = 60.0
_RM_LOST_S = 20.0
"""How long that fault lasts: longer than the ResourceManager takes a silent node for living."""


class Course:
    """How long the job took to work around a loss, and to be calm after the end of it."""

    def __init__(self, announce: Announce, way: str, place: str) -> None:
        self._announce = announce
        self._what = f"{way} of {place}"
        self._began = time.monotonic()
        self._around_s: float | None = None
        self._healed: float = self._began

    def is_around(self) -> None:
        """All run again, or what must end has ended."""
        self._around_s = time.monotonic() - self._began

    def heals(self) -> None:
        """The host comes back from now on."""
        self._healed = time.monotonic()

    def ends_in(self, scenario: Scenario) -> None:
        """It is calm, the result is exact, no process is left over; then input comes again."""
        scenario.is_calm()
        calm_s = time.monotonic() - self._healed
        around = "" if self._around_s is None else f"works around it after {self._around_s:.1f} s; "
        self._announce(f"{self._what}: {around}calm {calm_s:.1f} s after the heal")
        scenario.feed.go_on()


# ---------------------------------------------------------------------- an active container's host


def the_host_of_an_active(
    job: Job,
    faults: Faults,
    ways: Iterable[str],
    announce: Announce,
    meanwhile: Meanwhile | None = None,
) -> None:
    """It has an active and another's standby. The active goes where its standby was.

    What was on the host has ended by itself before, unless it stands still; the launchers of a host
    that comes back are sent away.
    """
    with Scenario(job) as scenario:
        for way in ways:
            lost, _ = scenario.arrange([("0", "1-0"), ("0-0", "1")])
            before = scenario.moment()
            children = pids_at(job, before, "0", "1-0")
            launchers = [parent_of(pid) for pid in children]
            course = Course(announce, way, "the host of an active")
            WAYS[way](faults, lost)
            assert faults.is_lost(lost)
            if way != "pause":
                have_ended(job, children)
            scenario.succeeds(before, "0", "0-0", "1-0")
            course.is_around()
            if meanwhile is not None:
                meanwhile(scenario, children, lost)
            course.heals()
            faults.heal()
            comes_back(scenario, before, launchers)
            course.ends_in(scenario)
        scenario.ends_well()


def pids_at(job: Job, moment: Moment, *processors: str) -> list[int]:
    """The pids here of the stream containers that these processors, or all, had in that moment."""
    had = moment.containers
    return [job.cluster.pid_here(had[p]["host"], had[p]["pid"]) for p in processors or had]


def have_ended(job: Job, pids: Collection[int]) -> None:
    """All of these processes are gone."""
    wait_for(lambda: not any(alive(pid) for pid in pids), job)


def comes_back(scenario: Scenario, before: Moment, launchers: Collection[int]) -> None:
    """The host's launchers have gone; one active and one standby were lost with it, no more."""
    have_ended(scenario.job, launchers)
    after = scenario.recovers()
    took_the_place(before, after, "0")
    are_untouched(before, after, "1")
    assert scenario.counted_since(before) == {
        "active failures": 1,
        "standby failures": 1,
        "failed over to a standby": 1,
    }


def kinds(containers: Containers, processor: str) -> set[str]:
    """How its stores were restored."""
    restored = containers[processor]["restored"]
    return {how["kind"] for tasks in restored.values() for how in tasks.values()}


def took_the_place(before: Moment, after: Containers, *actives: str) -> None:
    """Each runs where its standby was, with what that had."""
    for active in actives:
        assert after[active]["host"] == before.containers[f"{active}-0"]["host"]
        assert kinds(after, active) <= TAIL


def are_untouched(before: Moment, after: Containers, *processors: str) -> None:
    """These are the processes that they were."""
    for p in processors:
        assert (after[p]["epoch"], after[p]["pid"]) == (
            before.containers[p]["epoch"],
            before.containers[p]["pid"],
        )


# ---------------------------------------------------------------------- the AM's host


def the_host_of_the_am(
    job: Job,
    faults: Faults,
    ways: Iterable[str],
    announce: Announce,
    meanwhile: Meanwhile | None = None,
    **values: str,
) -> None:
    """The next attempt takes over, and the first one leaves no process when its host is back.

    ``values``: keys of the job.
    """
    with Scenario(job, **values) as scenario:
        for way in ways:
            host = has_an_active_beside_the_am(scenario)
            before = scenario.moment()
            attempt = job.get("v1/status")["job"]["attempt"]
            here = {p for p, c in before.containers.items() if c["host"] == host}
            children, first = pids_at(job, before, *here), pids_of(job.application_id)
            course = Course(announce, way, "the AM's host")
            WAYS[way](faults, host)
            assert faults.is_lost(host)
            answers_as_attempt(job, attempt + 1)
            if meanwhile is not None:
                meanwhile(scenario, children, host)
            are_placed_again(scenario, before, host)
            course.is_around()
            course.heals()
            faults.heal()
            have_ended(job, first)
            assert job.get("v1/status")["job"]["attempt"] == attempt + 1
            course.ends_in(scenario)
        scenario.ends_well()


def are_placed_again(scenario: Scenario, before: Moment, lost: str) -> None:
    """Containers on other hosts have come home; those of the lost host are elsewhere."""
    after = scenario.recovers()
    for processor, container in before.containers.items():
        assert after[processor]["epoch"] > container["epoch"]
    actives = {p: c["host"] for p, c in before.containers.items() if c["replica_of"] is None}
    at_home = {p: host for p, host in actives.items() if host != lost}
    assert {p: after[p]["host"] for p in at_home} == at_home
    assert lost not in {c["host"] for c in after.values()}
    # The next attempt alone counts. It saw no failure: YARN has ended the first one's containers. A
    # container that cannot come home takes the place of a standby, which does not run either.
    moved = len(actives) - len(at_home)
    assert more_than({}, counted(scenario.job)) == {"failed over to a standby": moved}


def has_an_active_beside_the_am(scenario: Scenario) -> str:
    """The AM's host; an active container runs there, moved as an operator would if need be."""
    host, hosts = scenario.am_host, scenario.hosts()
    if not any(h == host and "-" not in p for p, h in hosts.items()):
        free = next(p for p in hosts if "-" not in p and hosts[f"{p}-0"] != host)
        moved = scenario.job.operator("move", free, host)
        assert moved.returncode == 0, moved.stdout + moved.stderr
    return host


def answers_as_attempt(job: Job, attempt: int) -> None:
    """YARN's page of the application leads to that attempt, which answers."""

    def answers() -> bool:
        job.url = page_of(job)
        status = job.get("v1/status")
        job.url = status["coordinator_url"]
        return bool(status["job"]["attempt"] == attempt)

    wait_for(answers, job)


# ---------------------------------------------------------------------- what the job stands on


def the_host_of_kafka(job: Job, faults: Faults, ways: Iterable[str], announce: Announce) -> None:
    """All containers end for want of it; back, all of them run again, and nothing is charged.

    The driver waits.
    """
    with Scenario(job) as scenario:
        for way in ways:
            before = scenario.moment()
            children, driver = pids_at(job, before), job.program("application_master")
            course = Course(announce, way, "Kafka's host")
            WAYS[way](faults, "kafka")
            assert faults.is_lost("kafka")
            have_ended(job, children)
            course.heals()
            faults.heal()
            faults.wait_until_whole()
            scenario.succeeds(before, *before.containers)
            status = job.get("v1/status")
            assert not {f["cause"] for f in status["failures"]} & {"failed", "killed"}
            assert {c["failures"] for c in status["containers"]} == {0}
            assert job.program("application_master") == driver
            course.ends_in(scenario)
        scenario.ends_well()


def the_host_of_zookeeper(
    job: Job, faults: Faults, ways: Iterable[str], announce: Announce
) -> None:
    """To lose it is no loss: no program of the job uses it."""
    with Scenario(job) as scenario:
        before = scenario.moment()
        for way in ways:
            course = Course(announce, way, "ZooKeeper's host")
            WAYS[way](faults, "zk")
            assert faults.is_lost("zk")
            goes_on(scenario)
            course.is_around()
            course.heals()
            faults.heal()
            faults.wait_until_whole()
            course.ends_in(scenario)
        are_untouched(before, scenario.recovers(), *before.containers)
        assert scenario.counted_since(before) == {}
        scenario.ends_well()


def goes_on(scenario: Scenario) -> None:
    """Records that come from now on are counted."""
    wanted = scenario.feed.produced + _COUNTED
    wait_for(lambda: sum(scenario.job.counts().values()) >= wanted, scenario.job)


def a_minute_without_resource_manager(job: Job) -> None:
    """A processor that needs no new YARN container returns at once, others with the RM.

    It was dead, and reads what there is; no other container is disturbed.
    """
    with Scenario(job) as scenario, ThreadPoolExecutor(1) as pool:
        before = scenario.moment()
        child, other = pids_at(job, before, "0", "1-0")
        attempt = job.get("v1/status")["job"]["attempt"]
        back = pool.submit(job.cluster.restart_resource_manager, away_s=_RM_DEAD_S)
        wait_for(lambda: not is_managed(job), job)
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: job.containers()["0"]["epoch"] > before.containers["0"]["epoch"], job)
        wait_for(lambda: job.containers()["0"]["phase"] == "running", job)
        assert not back.done()
        os.kill(parent_of(other), signal.SIGKILL)
        back.result()
        scenario.succeeds(before, "0", "1-0")
        are_untouched(before, scenario.recovers(), "1", "0-0")
        assert job.get("v1/status")["job"]["attempt"] == attempt
        # The child's end is charged; no process reports the launcher's end, so that the end of its
        # lease counts.
        assert scenario.counted_since(before) == {
            "active failures": 1,
            "standby failures": 1,
            "charged": 1,
        }
        scenario.ends_well()


def the_host_of_the_resource_manager(
    job: Job, faults: Faults, ways: Iterable[str], announce: Announce
) -> None:
    """No container ends meanwhile, though it has taken all nodes for lost.

    Back, it ends what runs there, and starts the next attempt.
    """
    with Scenario(job) as scenario:
        for way in ways:
            before = scenario.moment()
            course = Course(announce, way, "the ResourceManager's host")
            WAYS[way](faults, "rm")
            back_at = time.monotonic() + _RM_LOST_S
            assert faults.is_lost("rm")
            goes_on(scenario)
            time.sleep(max(0.0, back_at - time.monotonic()))
            are_untouched(before, job.containers(), *before.containers)
            course.heals()
            faults.heal()
            faults.wait_until_whole()
            job.url = page_of(job)
            course.ends_in(scenario)
            job.url = job.get("v1/status")["coordinator_url"]
        scenario.ends_well()


def is_managed(job: Job) -> bool:
    """Whether the ResourceManager answers."""
    try:
        job.application()
    except UnavailableError:
        return False
    return True


# ---------------------------------------------------------------------- a host that starts again


def a_host_that_starts_again_between_two_runs(
    job: Job, faults: Faults, restart: Callable[[str], object]
) -> None:
    """The job was stopped in order; submitted again, each container is at home with its state."""
    job.begin(500)
    job.expects(500)
    before = job.containers()
    assert job.kill() == f"stopped {job.application_id} in order"
    restart(next(c["host"] for c in before.values()))
    faults.wait_until_whole()
    job.run()
    job.settled()
    after = job.containers()
    for processor, container in before.items():
        assert after[processor]["host"] == container["host"]
        assert kinds(after, processor) <= TAIL
    job.produce(500, first=500)
    job.expects(1000)
    job.end()


# ---------------------------------------------------------------------- a host without room


def a_disk_that_is_full(job: Job) -> None:
    """The container says which directory has no room; with room it goes on from what it had."""
    with job.cluster.small_disk("nm1"):
        state = job.cluster.state_dir("nm1")
        job.begin(500, "task.commit.ms=1000", "cluster-manager.container.retry.count=-1")
        job.expects(500)
        victim = next(p for p, c in job.containers().items() if c["host"] == "nm1")
        filler = fill(state)
        job.produce(500, first=500)
        wait_for(lambda: bool(job.get("v1/status")["failures"]), job)
        failure = job.failures()[0]
        assert (failure["processor_id"], failure["cause"]) == (victim, "failed")
        line = failure["last_lines"][-1]
        assert line.startswith(f"error: {job.cluster.state_path('nm1')}/{job.name}-1/counts/")
        assert "no room is left on its disk (0 bytes free); make room there, or " in line
        filler.unlink()
        after = job.settled()
        job.expects(1000)
        restored = job.containers()[victim]["restored"]["counts"]
        assert {r["kind"] for r in restored.values()} <= TAIL
        assert len(after) == 3
        job.end()
