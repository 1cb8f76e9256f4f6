"""What every ClusterResourceManager must do, whatever cluster it speaks for.

A new implementation is tested by a class of two lines: it inherits the tests here and has a fixture
``subject``, which gives a ``Subject``: an application on three hosts, each with room for two of its
containers or more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import pytest

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager, ResourceReport
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.model.ids import Host, RequestId

REQUESTED, RUNNING, ENDED = (
    SkeinContainerState.REQUESTED,
    SkeinContainerState.RUNNING,
    SkeinContainerState.ENDED,
)


class Subject(Protocol):
    """An application on a cluster, and a hand on that cluster.

    ``hosts``: all that can be asked for, the one to be killed last. ``container_mb``: the size of a
    container.
    """

    hosts: tuple[Host, ...]
    container_mb: int

    def manager(self) -> ClusterResourceManager:
        """What the attempt's next driver has."""

    def until(self, condition: Callable[[], bool]) -> None:
        """Time passes until ``condition`` holds."""

    def pass_polls(self) -> None:
        """Time passes in which a request that can be granted would be."""

    def host_of(self, report: ResourceReport) -> Host:
        """Where a granted container really is."""

    def has_started(self, report: ResourceReport) -> bool:
        """Whether a process runs in a granted container: its host took the launch."""

    def exit(self, report: ResourceReport) -> None:
        """The process of a granted container ends by itself, with exit code 1."""

    def kill_host(self, host: Host) -> None:
        """The machine is dead, and the cluster will notice."""

    def start_host(self, host: Host) -> None:
        """The machine is back."""

    def is_over(self) -> bool:
        """Whether the application has ended, with the result and diagnostics of ``finish``."""


class Watch:
    """A manager, and what it reported last of each request from ``since`` on."""

    def __init__(self, subject: Subject, manager: ClusterResourceManager, since: RequestId) -> None:
        self.manager = manager
        self.since = since
        self.subject = subject
        self.seen: dict[RequestId, ResourceReport] = {}
        self.ends: list[RequestId] = []

    def look(self) -> Watch:
        """One more report."""
        for report in self.manager.resources():
            request_id = report.container.request_id
            if request_id is not None and request_id >= self.since:
                self.seen[request_id] = report
                if report.container.state is ENDED:
                    self.ends.append(request_id)
        return self

    def ask(self, *hosts: Host | None) -> list[RequestId]:
        """One request each, on that host or anywhere; their numbers."""
        numbers = []
        for host in hosts:
            number = RequestId(self.manager.next_request_id)
            self.manager.request(number, host, {"HOMEPORT_REQUEST_ID": str(number)})
            numbers.append(number)
        return numbers

    def until(self, state: SkeinContainerState, numbers: Iterable[RequestId]) -> None:
        """Each of these was last reported in this state."""
        wanted = set(numbers)

        def are_all() -> bool:
            self.look()
            return all(self.state(n) is state for n in wanted)

        self.subject.until(are_all)

    def state(self, number: RequestId) -> SkeinContainerState | None:
        """The state that was reported last."""
        return self.container(number).state if number in self.seen else None

    def container(self, number: RequestId) -> SkeinContainer:
        """What was reported last of its container."""
        return self.seen[number].container

    def host(self, number: RequestId) -> Host:
        """Where it really is."""
        return self.subject.host_of(self.seen[number])

    def report(self, host: Host) -> HostReport:
        """The cluster's report of this host."""
        return next(r for r in self.manager.hosts() if r.host == host)


def is_silent(manager: ClusterResourceManager) -> bool:
    """Whether it answers no more."""
    try:
        manager.resources()
    except UnavailableError:
        return True
    return False


class ClusterResourceManagerConformance:
    """The tests; each leaves no container behind."""

    @pytest.fixture
    def subject(self) -> Subject:
        """The application."""
        raise AssertionError("each kind of cluster manager says what its application is")

    @pytest.fixture
    def watch(self, subject: Subject) -> Iterable[Watch]:
        """A driver's manager; afterwards all that it asked for has ended."""
        manager = subject.manager()
        made = Watch(subject, manager, RequestId(manager.next_request_id))
        yield made
        if not subject.is_over():
            made.look()
            for number, report in made.seen.items():
                if report.container.state is not ENDED:
                    made.manager.cancel(number)
            made.until(ENDED, made.seen)
            free = {h: made.report(h).memory_mb - 1024 for h in subject.hosts}
            subject.until(lambda: all(made.report(h).free_memory_mb > free[h] for h in free))

    def test_each_host_is_reported_with_what_it_has(self, watch: Watch) -> None:
        """Once, by name, with its rack; what a container takes is not free any more."""
        hosts = watch.subject.hosts
        reports = watch.manager.hosts()
        assert [r.host for r in reports] == sorted(hosts)
        assert all(r.is_live and r.rack for r in reports)
        assert all(r.free_memory_mb <= r.memory_mb and 0 < r.free_cores <= r.cores for r in reports)
        before = watch.report(hosts[0]).free_memory_mb
        watch.until(RUNNING, watch.ask(hosts[0]))
        taken = before - watch.subject.container_mb
        watch.subject.until(lambda: watch.report(hosts[0]).free_memory_mb == taken)

    def test_a_strict_request_is_granted_on_its_host(self, watch: Watch) -> None:
        """Only granted requests have a resource; the Skein id leads to its request."""
        hosts = watch.subject.hosts
        numbers = watch.ask(*hosts)
        watch.until(RUNNING, numbers)
        assert [watch.host(n) for n in numbers] == list(hosts)
        assert len({watch.seen[n].resource_id for n in numbers} - {None}) == len(hosts)
        for number in numbers:
            assert watch.manager.request_of(watch.container(number).skein_id) == number
        assert watch.manager.request_of("nobody_0") is None

    def test_a_full_host_keeps_only_its_own_requests_waiting(self, watch: Watch) -> None:
        """A strict request is not moved; ``any`` goes where there is room; room serves it."""
        full, *others = watch.subject.hosts
        room = watch.report(full).free_memory_mb // watch.subject.container_mb
        filling = watch.ask(*[full] * room)
        watch.until(RUNNING, filling)
        waiting, other, anywhere = watch.ask(full, others[0], None)
        watch.until(RUNNING, [other, anywhere])
        watch.subject.pass_polls()
        assert watch.look().state(waiting) is REQUESTED
        assert watch.seen[waiting].resource_id is None
        assert watch.host(other) == others[0]
        assert watch.host(anywhere) in others
        watch.manager.cancel(filling[0])
        watch.until(RUNNING, [waiting])
        assert watch.host(waiting) == full

    def test_a_request_for_a_host_that_is_not_there_waits(self, watch: Watch) -> None:
        """Another one is granted meanwhile; it is withdrawn as any other."""
        waiting, granted = watch.ask(Host("later"), watch.subject.hosts[0])
        watch.until(RUNNING, [granted])
        watch.subject.pass_polls()
        assert watch.look().state(waiting) is REQUESTED
        watch.manager.cancel(waiting)
        watch.until(ENDED, [waiting])

    def test_a_request_is_withdrawn_before_it_is_granted(self, watch: Watch) -> None:
        """Reported once as ended, without a resource; the room that it waited for stays free."""
        full = watch.subject.hosts[0]
        room = watch.report(full).free_memory_mb // watch.subject.container_mb
        numbers = watch.ask(*[full] * room)
        watch.until(RUNNING, numbers)
        (waiting,) = watch.ask(full)
        watch.subject.until(lambda: watch.look().state(waiting) is REQUESTED)
        watch.manager.cancel(waiting)
        watch.until(ENDED, [waiting])
        watch.manager.cancel(numbers[0])
        watch.subject.pass_polls()
        watch.look()
        assert watch.seen[waiting].resource_id is None
        assert watch.ends.count(waiting) == 1

    def test_a_repeated_call_counts_once(self, watch: Watch) -> None:
        """A request, a cancellation; the cancellation of an unknown request has no effect."""
        (number,) = watch.ask(watch.subject.hosts[0])
        watch.manager.request(number, watch.subject.hosts[0], {})
        watch.until(RUNNING, [number])
        watch.subject.pass_polls()
        assert list(watch.look().seen) == [number]
        assert watch.manager.next_request_id == number + 1
        watch.manager.cancel(number)
        watch.manager.cancel(number)
        watch.manager.cancel(RequestId(number + 100))
        watch.until(ENDED, [number])
        watch.manager.cancel(number)
        watch.subject.pass_polls()
        assert watch.look().ends == [number]

    def test_an_end_is_reported_once_with_its_story(self, watch: Watch) -> None:
        """It failed by itself: neither was it killed for a fault, nor taken back."""
        failed, stays = watch.ask(*watch.subject.hosts[:2])
        watch.until(RUNNING, [failed, stays])
        resource_id = watch.seen[failed].resource_id
        watch.subject.exit(watch.seen[failed])
        watch.until(ENDED, [failed])
        end = watch.container(failed)
        assert end.story
        assert not end.is_own_fault
        assert not end.is_taken_back
        assert watch.seen[failed].resource_id == resource_id
        watch.subject.pass_polls()
        assert watch.look().ends == [failed]
        assert watch.state(stays) is RUNNING
        assert watch.manager.request_of(end.skein_id) == failed

    def test_the_next_driver_finds_what_was_granted(self, watch: Watch) -> None:
        """Under the same numbers; what was only asked for is withdrawn, and numbers go on."""
        host = watch.subject.hosts[0]
        room = watch.report(host).free_memory_mb // watch.subject.container_mb
        granted = watch.ask(*[host] * room)
        watch.until(RUNNING, granted)
        (asked,) = watch.ask(host)
        watch.subject.until(lambda: watch.look().state(asked) is REQUESTED)
        successor = Watch(watch.subject, watch.subject.manager(), watch.since)
        assert successor.manager.next_request_id == asked + 1
        assert successor.manager.request_of(watch.container(granted[0]).skein_id) == granted[0]
        successor.until(RUNNING, granted)
        successor.until(ENDED, [asked])
        successor.manager.cancel(granted[0])
        successor.until(ENDED, [granted[0]])

    def test_a_lost_host_takes_its_containers_and_comes_back(self, watch: Watch) -> None:
        """They are taken back, which is no failure; a request made meanwhile is served.

        A container is RUNNING before its host has answered the launch; if the host dies first, the
        launch fails.
        """
        *others, victim = watch.subject.hosts
        lost, lives = watch.ask(victim, others[0])
        watch.until(RUNNING, [lost, lives])
        watch.subject.until(lambda: watch.subject.has_started(watch.seen[lost]))
        watch.subject.kill_host(victim)
        try:
            self._lose(watch, victim, lost, lives)
        finally:
            watch.subject.start_host(victim)
        again = max(watch.seen)
        watch.until(RUNNING, [again])
        assert watch.report(victim).is_live

    @staticmethod
    def _lose(watch: Watch, victim: Host, lost: RequestId, lives: RequestId) -> None:
        watch.until(ENDED, [lost])
        assert watch.container(lost).is_taken_back, watch.container(lost).story
        assert not watch.container(lost).is_own_fault
        assert "*lost* node" in watch.container(lost).story
        report = watch.report(victim)
        assert not report.is_live
        assert report.memory_mb >= watch.subject.container_mb
        assert report.free_memory_mb == report.free_cores == 0
        (again,) = watch.ask(victim)
        watch.subject.pass_polls()
        assert watch.look().state(again) is REQUESTED
        assert watch.state(lives) is RUNNING

    def test_the_application_ends_with_its_result(self, watch: Watch) -> None:
        """And takes all containers with it. The last test: nothing can be asked any more."""
        numbers = watch.ask(watch.subject.hosts[0], None)
        watch.until(RUNNING, numbers)
        watch.manager.finish(JobResult.FAILED, "the reason")
        watch.subject.until(watch.subject.is_over)
        watch.subject.until(lambda: is_silent(watch.manager))
