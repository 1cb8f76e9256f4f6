"""The driver: the shell around the allocator. It decides nothing.

One task takes events from one queue, in order. Each event goes through ``step`` and the invariants;
the records of many events are appended and flushed at once; then ``_enter`` carries the decisions
out, in order. Their outcomes return as events.

Calls to Skein, the ResourceManager and Kafka run in threads with time limits, never on the event
loop; Skein gets its orders one at a time, in the order of the decisions. ``http_backend`` serves
the driver by HTTP.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from homeport.appmaster.allocation import invariants
from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    AllocatorState,
    JobPhase,
    initial_state,
)
from homeport.appmaster.allocation.protocol import instructions
from homeport.appmaster.allocation.protocol.events import (
    Event,
    JobModelPublished,
    LauncherSilent,
    ResourceEnded,
    RetiredStopped,
    SettingsChanged,
    ShutdownRequested,
    Timer,
    TimerFired,
    describe,
    named,
)
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.attempt.attempt_files import StartedLedger
from homeport.appmaster.attempt.inherited import Adoption, HoldBack
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager
from homeport.appmaster.driver import decided_records
from homeport.appmaster.driver.cluster_watch import ClusterWatch
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.driver.driver_settings import DriverSettings, allocator_settings
from homeport.appmaster.driver.driver_view import DriverView
from homeport.appmaster.driver.event_queue import EventQueue, Item
from homeport.appmaster.driver.launcher_messages import LauncherMessages, StandbyReports
from homeport.appmaster.driver.placement_requests import PlacementRequests
from homeport.appmaster.driver.polling import lease_pause_ms
from homeport.appmaster.driver.resource_manager_client import ResourceManagerClient
from homeport.appmaster.driver.rollouts.am_environment import AmEnvironment
from homeport.appmaster.driver.rollouts.rollout import Surroundings
from homeport.appmaster.driver.rollouts.rollouts import Rollouts
from homeport.appmaster.job_model.live_job_coordinator import LiveJobCoordinator
from homeport.appmaster.job_model.mixed_roles import places_of
from homeport.appmaster.job_model.model_change import ModelChange
from homeport.appmaster.job_model.reading_ahead import Lags
from homeport.appmaster.lease.fencing import Fencing
from homeport.appmaster.lease.keeper_client import KeeperClient, KeeperLink
from homeport.appmaster.lease.launcher_table import LauncherEntry, LauncherTable
from homeport.appmaster.report.audited_changes import AuditedChanges
from homeport.appmaster.report.decision_log import DecisionLog
from homeport.appmaster.report.event_log import EventLog
from homeport.appmaster.report.job_status import JobIdentity, JobStatus
from homeport.appmaster.report.step import LauncherMessage, Step, StepObserver
from homeport.config.config import INT_MAX, Config
from homeport.config.errors import InvariantViolation, UnavailableError, WireError
from homeport.config.settings.log_section import LogConfig
from homeport.job_coordinator import logs
from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone.standby_view import lags_of

_AT_ONCE = 50
"""Events whose records share a transaction: each takes longer than many steps."""
_POLL_S = 0.5
_RETRY_S = 1.0

log = logging.getLogger("driver")


def checked_step(before: AllocatorState, event: Event, events: EventLog) -> Decision:
    """Return the decision on ``event``.

    InvariantViolation: a bug of ours; the message has the state, and from ``events`` the last ones
    of the processors that this event is about.
    """
    try:
        decision = step(before, event)
        invariants.check_step(before, decision.state, describe(event), decision.changes)
    except InvariantViolation as e:
        raise InvariantViolation(f"{e}\n{events.trail(event)}") from e
    return decision


class Timers:
    """Timers of the allocator, on one event loop; the end of each goes to ``post``."""

    def __init__(self, post: Callable[[TimerFired], None]) -> None:
        self._post = post
        self._handles: dict[Timer, asyncio.TimerHandle] = {}

    def set(self, timer: Timer, delay_ms: int) -> None:
        """Set the timer, again if it is set; it ends after ``delay_ms``, below 0: at once.

        A delay is at most 24 days: the loop counts in floats, which do not hold every whole number.
        """
        self.cancel(timer)
        loop = asyncio.get_running_loop()
        delay_s = max(0, min(delay_ms, INT_MAX)) / 1000
        self._handles[timer] = loop.call_later(delay_s, self._fire, timer)

    def cancel(self, timer: Timer) -> None:
        """Cancel the timer, if it is set."""
        handle = self._handles.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, timer: Timer) -> None:
        self._handles.pop(timer, None)
        self._post(TimerFired(timer))


class Driver:
    """Runs one job in one AM attempt. To be used on one event loop."""

    def __init__(  # noqa: PLR0913 - by name only; each is another part of the world outside
        self,
        *,
        settings: DriverSettings,
        allocator: AllocatorSettings,
        identity: JobIdentity,
        published: JobModelPublished,
        resources: ClusterResourceManager,
        stream: CoordinatorStream,
        history: HistoryWriter,
        keeper: KeeperLink,
        fence: Callable[[Incarnation], None],
        live: LiveJobCoordinator,
        publish: Callable[[ModelChange], JobModelPublished],
        started: StartedLedger,
    ) -> None:
        self.settings = settings
        self._state = initial_state(allocator, resources.next_request_id)
        self.adoption = Adoption(settings.adopt)
        self.hold_back = HoldBack(settings.inherited, settings.recorded_stops)
        self._has_begun = False
        self._shutdown: ShutdownRequested | None = settings.ending
        self.leases = KeeperClient(keeper)
        self.fencing = Fencing(fence, self.post)
        self._published = published
        self.live = live
        self._client = CoordinatorStreamClient(stream, identity.rank)
        self._history = history
        self.status = JobStatus(identity, wall_ms, step(self._state, published).state)
        self.launchers = LauncherTable(settings.lease_ms, boot_ms())
        self.standbys = StandbyReports()
        self.decisions = DecisionLog(history, self.launchers)
        self.audit = AuditedChanges(history, stream)
        self._queue = EventQueue()
        self._placements, self._rollouts = self._placements_and_rollouts(stream)
        self.rolling = self._rollouts.rolling
        self._publish = publish
        upgrades = self._rollouts.upgrades
        self.package_of: Callable[[ProcessorId], str | None] = upgrades.of
        self._environment = AmEnvironment(
            *(started.folder, os.environ, lambda: upgrades.left),
            *(self._client.package, self.status.failed),
        )
        self._timers = Timers(self.post)
        self._skein = ResourceManagerClient(resources)
        self.cluster = ClusterWatch(
            resources,
            self._skein,
            self.launchers,
            self.adoption,
            self.post,
            lambda: self._state.settings,
        )
        self.view = self._new_view()
        self._observers = self._new_observers(started)
        self._end: instructions.EndJob | None = None
        self._parent = os.getppid()

    def _placements_and_rollouts(
        self, stream: CoordinatorStream
    ) -> tuple[PlacementRequests, Rollouts]:
        application, job_models = self.status.identity.rank.application, self.live.job_models
        placements = PlacementRequests(
            stream,
            self._client,
            self._queue,
            application,
            config=lambda: job_models.model.config,
            may_take=lambda: self._end is None and self._state.phase is not JobPhase.NEW,
            taken=lambda request: self.audit.requested(
                request, self.view.place_of(request.processor_id)
            ),
        )
        surroundings = Surroundings(
            client=self._client,
            queue=self._queue,
            application=application,
            history=self._history,
            now=lambda: (self._state, self.may_change),
            job_models=job_models,
            post=self.post,
        )
        return placements, Rollouts(stream, surroundings)

    def _new_view(self) -> DriverView:
        return DriverView(
            status=self.status,
            recoveries=self.decisions.recoveries,
            launchers=self.launchers,
            adoption=self.adoption,
            hold_back=self.hold_back,
            cluster=self.cluster,
            live=self.live,
            stream=self._client,
            resources=self._skein,
            leases=self.leases,
            rollouts=self._rollouts,
            now=lambda: (self._state, self.settings),
        )

    def _new_observers(self, started: StartedLedger) -> tuple[StepObserver, ...]:
        messages = LauncherMessages(
            view=self.view,
            decisions=self.decisions,
            standbys=self.standbys,
            leases=self.leases,
            fencing=self.fencing,
            started=started,
            found=self.found,
            gone=self.gone,
        )
        return (
            messages.reported,
            self.decisions.decided,
            self._carry_out,
            lambda step: self.status.entered(step.decision, self.launchers),
            messages.followed,
            self._rollouts.entered,
        )

    async def run(self, coordinator_url: str) -> instructions.EndJob:
        """Run the job to its end, end the application, and return how it ended.

        ``coordinator_url``: where launchers and containers find the job coordinator.

        HomeportError: this attempt cannot go on: an invariant is broken, a newer attempt has taken
        over, or Skein's AM is gone.
        """
        self._skein.environment = {
            **self.settings.environment,
            "SAMZA_COORDINATOR_URL": coordinator_url,
        }
        self.status.coordinator_url = coordinator_url
        if self.hold_back.pending:
            log.info("waiting for %s", ", ".join(map(named, self.hold_back.pending)))
        await self._begin_if_due()
        watchers = [
            asyncio.create_task(watching, name=name)
            for name, watching in {
                "resources": self.cluster.watch_resources(),
                "hosts": self.cluster.watch_hosts(),
                "launchers": self._watch_launchers(),
                "stream": self._watch_stream(),
                "leases": self._watch_leases(),
                "orders": self._skein.carry_out(self._refused),
                "job-model": self.live.run(self),
                "placements": self._placements.run(),
                "rollouts": self._rollouts.run(),
                "environment": self._environment.run(),
            }.items()
        ]
        main = asyncio.create_task(self._take_events(), name="events")
        try:
            done, _ = await asyncio.wait([main, *watchers], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a watcher ends by an error only
            end = main.result()
            await self._report_stops(end)
            await self._skein.finish(end.result, self.status.diagnostics(end))
            return end
        finally:
            for task in (main, *watchers):
                task.cancel()
            self.cluster.close()
            self._skein.close()
            self.leases.close()
            self._client.close()
            self.fencing.close()
            self.live.close()

    def found(self, incarnation: Incarnation, host: Host) -> None:
        """Note that an incarnation that an earlier driver permitted runs on ``host``."""
        self._account_for(incarnation, f"runs on {host}")

    def gone(self, incarnation: Incarnation, cause: str) -> None:
        """Note the stop of an incarnation that an earlier driver permitted, with evidence."""
        is_retired = self._published.retired.get(incarnation.processor_id) == incarnation.epoch
        if self._account_for(incarnation, f"has stopped: {cause}") and is_retired:
            self.post(RetiredStopped(incarnation, cause))

    def _account_for(self, incarnation: Incarnation, what: str) -> bool:
        """Note what became of an inherited incarnation; return whether that was news."""
        if self.adoption.settled(incarnation) or self.hold_back.settled(incarnation):
            log.info("%s@%d %s", incarnation.processor_id, incarnation.epoch, what)
            self.decisions.event("accounted-for", incarnation, what=what)
            return True
        return False

    async def _take_events(self) -> instructions.EndJob:
        while self._end is None:
            items = await self._queue.take_all(_AT_ONCE)
            try:
                await self._take(items)
            except BaseException as e:
                for item in items:
                    item.failed(e)
                raise
        return self._end

    async def _take(self, items: Iterable[Item]) -> None:
        """Take these events, from steps to instructions; one transaction has all records."""
        state, taken = self._state, list[tuple[Item, Event, Decision]]()
        messages = list[CoordinatorStreamMessage]()
        for item in items:
            event = await item.event()
            if event is None:
                item.decided(None)
                continue
            decision = checked_step(state, event, self.decisions.events)
            messages += self._messages(decision)
            messages += self._rollouts.messages(state, event, decision, item.message)
            taken.append((item, event, decision))
            state = decision.state
            if state.phase is JobPhase.ENDED:
                break
        await self._client.append(messages)
        for item, event, decision in taken:
            self._enter(Step(self._state, event, decision, item.known_ms, item.message))
            item.decided(decision)

    def _messages(self, decision: Decision) -> Iterable[CoordinatorStreamMessage]:
        submission = self.status.identity.rank.submission
        rest = (self._tasks_of, wall_ms(), self.settings.unseen_ms, submission)
        return decided_records.messages(decision.records, decision.state.container, *rest)

    def _enter(self, step: Step) -> None:
        """Put a decision in force whose records are written: do what follows from it, in order."""
        self._state = step.decision.state
        for observer in self._observers:
            observer(step)

    def _tasks_of(self, processor_id: ProcessorId) -> Iterable[TaskName]:
        container = self.live.job_models.model.containers.get(processor_id)
        return container.tasks if container is not None else ()

    @property
    def state(self) -> AllocatorState:
        """The state of the allocator."""
        return self._state

    def _carry_out(self, step: Step) -> None:
        for instruction in step.decision.instructions:
            match instruction:
                case instructions.RequestResource() | instructions.CancelRequest():
                    self._skein.order(instruction)
                case instructions.SetTimer(timer=timer, delay_ms=delay_ms):
                    self._timers.set(timer, delay_ms)
                case instructions.CancelTimer(timer=timer):
                    self._timers.cancel(timer)
                case instructions.PermitContainer():
                    processor_id = instruction.incarnation.processor_id
                    self.decisions.permitted(instruction, self._state.container(processor_id))
                    # A temporary standby is in no JobModel.
                    self.live.job_models.remember([processor_id])
                case instructions.StopContainer():
                    self.decisions.stop_ordered(instruction)
                case instructions.FailTasksOver(processor_id=processor_id):
                    self.live.lost(processor_id)
                case instructions.SuspectOurselves():
                    self.status.failed(
                        f"{instructions.brief(instruction)}: perhaps the AM's own network did"
                    )
                case instructions.EndJob():
                    self._end = instruction

    def post(self, event: Event) -> None:
        """Put an event into the queue, without a caller that waits."""
        self._queue.post(event)

    async def ask(self, event: Event, message: LauncherMessage) -> Decision:
        """Return the decision on the event of a launcher's message; see ``EventQueue.ask``."""
        return await self._queue.ask(event, message)

    def _refused(
        self,
        order: instructions.RequestResource | instructions.CancelRequest,
        error: UnavailableError,
    ) -> None:
        # Not at once: what refuses now will refuse again.
        later = asyncio.get_running_loop().call_later
        if isinstance(order, instructions.CancelRequest):
            # Nothing else withdraws it: it would keep its host reserved for ever.
            later(_RETRY_S, self._skein.order, order)
            return
        self.status.failed(f"{instructions.brief(order)}: {error}")
        later(_RETRY_S, self.post, ResourceEnded(order.request_id, story=str(error)))

    async def _watch_launchers(self) -> None:
        while True:
            if os.getppid() != self._parent:
                # The supervisor alone reports to YARN and starts the next driver.
                raise UnavailableError("the supervisor is gone: this attempt is over")
            await self._begin_if_due()
            self._end_if_due()
            for news in self.standbys.news():
                self.post(news)
            held = {c.resource_id for c in self._state.containers if c.phase in LIVE}
            for launcher in self.launchers.silent(boot_ms(), {r for r in held if r is not None}):
                self._launcher_gone(launcher)
            await asyncio.sleep(_POLL_S)

    def _launcher_gone(self, launcher: LauncherEntry) -> None:
        """Give up a launcher that is silent, with nothing that runs below it any more."""
        log.warning("launcher %s on %s is silent", launcher.resource_id, launcher.host)
        self.post(launcher.gone())

    async def _watch_leases(self) -> None:
        while True:
            running = {c for c in self._state.containers if c.phase in LIVE}
            live = {c.incarnation for c in running} | set(self.adoption.pending)
            for incarnation, renewed_ms in (await self.leases.revoked(live)).items():
                self.decisions.revoked(incarnation, renewed_ms)
                if incarnation in self.adoption.pending:
                    self.cluster.unheard.lease_lost()
                self.fencing.lost(incarnation)
                if self.view.runs(incarnation):
                    self._lose_launcher_of(incarnation)
                self.gone(incarnation, StopCause.LEASE_LOST.value)
            await asyncio.sleep(lease_pause_ms(self.leases.due_ms) / 1000)

    def _lose_launcher_of(self, incarnation: Incarnation) -> None:
        container = self._state.container(incarnation.processor_id)
        if container is None or container.resource_id is None:
            raise InvariantViolation(f"{incarnation} runs nowhere")
        launcher = self.launchers.find(container.resource_id)
        if launcher is None:
            self.post(LauncherSilent(container.resource_id))
        else:
            self.launchers.forget(launcher.resource_id)
            self._launcher_gone(launcher)

    async def _watch_stream(self) -> None:
        while True:
            news = await self._client.read()
            audited = self.audit.follow(await self._client.taken_keys())
            if audited is not None and await self._client.audited(audited):
                self.audit.noted(audited)
            if news is not None:
                self.view.localities = news.localities
                self.status.versions.update(news.versions)
                self.live.heard(news.config, news.at_once)
                await self._note_stops(news.stopped)
                self.fencing.reported(news.fenced)
                self._placements.heard(news)
                self._rollouts.heard(news)
            await asyncio.sleep(self.settings.catch_up_interval_ms / 1000)

    @property
    def places(self) -> Places:
        """Where containers run, or hold a launcher."""
        return places_of(self._state)

    @property
    def lags(self) -> Lags:
        """What the standbys of mixed containers lack, by the last reports of those that run."""
        running = [c.incarnation for c in self._state.containers if c.phase in LIVE]
        return lags_of(self.status.report_of(incarnation) for incarnation in running)

    @property
    def may_change(self) -> bool:
        """Whether a JobModel may be published: all that runs is known, and the job goes on."""
        return (
            self.adoption.is_complete
            and self._shutdown is None
            and self._state.phase is JobPhase.ACTIVE
            and self._state.ending is None
        )

    async def publish(self, change: ModelChange) -> bool:
        """Publish a changed JobModel, and have the allocator follow it, as one item of the queue.

        Return whether it was published: ``may_change`` must hold when its turn comes. A decision
        between publication and event would be one on the former model, and its permits would
        overwrite the epochs of the publication.

        WireError: one of its records cannot be written, since it is too large; none is.
        """
        refused: list[WireError] = []

        async def work() -> JobModelPublished | None:
            try:
                return await self._published_now(change) if self.may_change else None
            except WireError as error:
                refused.append(error)
                return None

        decision = await self._queue.carry_out(work)
        if refused:
            raise refused[0]
        return decision is not None

    async def _published_now(self, change: ModelChange) -> JobModelPublished:
        published = await self._client.publish(lambda: self._publish(change))
        if published.version != change.version:
            raise InvariantViolation(
                f"JobModel version {change.version} was saved, {published.version} published"
            )
        self.live.job_models.enter(published.version, change.model)
        if change.rolling is not None:
            self.rolling.begun(change.rolling)
        return replace(published, older=self.rolling.older_now())

    def configured(self, config: Config) -> None:
        """Put the driver's own settings of a new configuration into force."""
        self.settings = self.settings.configured(config)
        logs.set_level(LogConfig.of(config).level)
        self._skein.environment = {**self._skein.environment, **self.settings.environment}
        allocator = allocator_settings(config)
        if allocator != self._state.settings:
            self.post(SettingsChanged(allocator))

    async def _note_stops(self, stopped: Mapping[Incarnation, str]) -> None:
        """Stop waiting for incarnations whose stop has evidence (safety P1)."""
        for incarnation, cause in stopped.items():
            if incarnation in self.adoption.pending:
                await self.leases.ended(incarnation)
            self.gone(incarnation, cause)

    def end_job(self, request: ShutdownRequested) -> None:
        """End the job in order, once it is known what an earlier driver has left running."""
        self._shutdown = self._shutdown or request
        self._end_if_due()

    def _end_if_due(self) -> None:
        if self._shutdown is not None and self.adoption.is_complete:
            self.post(self._shutdown)
            self._shutdown = None

    async def _begin_if_due(self) -> None:
        """Begin placing, once, when nothing of lower ranks can run any more (safety A4)."""
        now_ms = boot_ms()
        if self._has_begun or not self.hold_back.is_over(now_ms):
            return
        self._has_begun = True
        unheard = self.hold_back.pending
        waited_ms = now_ms - self.hold_back.since_ms
        names = ", ".join(map(named, unheard)) or "none"
        log.info("placing begins after %d ms; without a record of a stop: %s", waited_ms, names)
        self._history.event(
            "hold-back-over", waited_ms=waited_ms, unheard=[named(i) for i in unheard]
        )
        self.status.begun(waited_ms, unheard)
        if unheard:
            await self._client.report_stops(dict.fromkeys(unheard, StopCause.LEASE_LOST.value))
        # Those of lower ranks have stopped.
        retired = self.adoption.still(self._published.retired)
        self.post(replace(self._published, retired=retired))
        for event in self._placements.unfinished():
            self.post(event)

    async def _report_stops(self, end: instructions.EndJob) -> None:
        """Record what has stopped: the next rank need not wait for it."""
        log.info("the job ends: %s %s", end.result.value, end.diagnostics)
        stopped = {c.incarnation: c.phase.value for c in self._state.containers if c.epoch}
        pending = self.adoption.pending
        await self._client.report_stops({i: c for i, c in stopped.items() if i not in pending})
