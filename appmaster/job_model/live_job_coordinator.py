"""The job coordinator of a running job: changes it with its configuration and its inputs.

It makes one change at a time. It compares the coordinator stream's configuration and Kafka's inputs
with the JobModel in force, computes the next JobModel off the event loop, publishes it, and only
then looks again: the next change has what was written meanwhile. If a change is impossible it logs
why, and the model in force stays.

Source: COORD, "Job Coordinator": it "periodically catches up with any new data written to the
coordinator stream and updates the Job Model".
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from msgspec import to_builtins

from homeport.appmaster.allocation.protocol.events import ShutdownRequested
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.live_configuration import LiveConfiguration, has_state
from homeport.appmaster.job_model.mixed_roles import MixedRoles
from homeport.appmaster.job_model.model_change import (
    ModelChange,
    ModelPlanner,
    changed_containers,
    note_change,
)
from homeport.appmaster.job_model.reading_ahead import Lags, ReadingAhead, taken_back
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, UnavailableError, WireError
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.sections import StandbyConfig, TaskConfig
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.metadata.topics import InputTopicManager, recreated, refusal
from homeport.job_coordinator.metadata.upgrade import is_at_once
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.upgrade import RollingRestart
from homeport.job_coordinator.planning.input_watch import InputsSeen, InputWatch
from homeport.job_coordinator.status.shape import ShownConfiguration, ShownTakenOver

_T = TypeVar("_T")
_POLL_S = 0.5
_CONFIRM_S = 5.0
"""A fault of the inputs ends the job, but only if it is seen again after this time."""

log = logging.getLogger("driver")


class Follows(Protocol):
    """The rolling restarts of the job."""

    def following(
        self, version: int, before: Config, after: Config, names: Collection[str]
    ) -> RollingRestart:
        """Return the record for these keys, which this version of the JobModel changes."""


class RunningJob(Protocol):
    """What the driver does for its job coordinator."""

    @property
    def may_change(self) -> bool:
        """Whether a JobModel may be published: the job does not end, and what runs is known."""

    @property
    def places(self) -> Places:
        """Where containers run, or hold a host."""

    @property
    def lags(self) -> Lags:
        """What the standbys of mixed containers lack."""

    @property
    def rolling(self) -> Follows:
        """What makes the record of a rolling restart."""

    async def publish(self, change: ModelChange) -> bool:
        """Publish the change, and have the allocator follow it; False: it may not be published.

        WireError: a record of it cannot be written, for example because of its size.
        """

    def configured(self, config: Config) -> None:
        """Apply the keys that the driver itself reads."""

    def end_job(self, request: ShutdownRequested) -> None:
        """End the job in order."""


class LiveJobCoordinator:
    """Follows configuration and inputs, on the driver's event loop.

    ``look`` asks Kafka for the inputs of a configuration. ``history`` gets each change before it is
    published. ``topics`` has the ids of the inputs' topics. ``look_for_topics`` writes the inputs
    that are new by a regular expression into the stream, whose news bring them. It returns a line
    for each topic that is refused.
    """

    def __init__(
        self,
        *,
        configuration: LiveConfiguration,
        job_models: JobModelStore,
        planner: ModelPlanner,
        look: Callable[[Config], InputsSeen],
        history: HistoryWriter,
        topics: InputTopicManager,
        look_for_topics: Callable[[JobModel], tuple[str, ...]],
    ) -> None:
        self._configuration = configuration
        self.job_models = job_models
        self._planner = planner
        self._look = look
        self._history = history
        self._topics = topics
        self._inputs = InputWatch(topics.ids())
        self._begun_anew = [
            {"input": str(stream), "submission": topic.submission, "topic_id": topic.topic_id}
            for stream, topic in sorted(topics.read().items())
            if topic.floor is not None
        ]
        self._suspected: str | None = None
        self._heard: Config | None = None
        self._at_once: str | None = None
        self._settled: Config | None = None
        self._is_news = asyncio.Event()
        self._looked_s: float | None = None
        self._look_for_topics = look_for_topics
        self._topics_looked_s = -math.inf
        self._topics_refused: tuple[str, ...] = ()
        self._pool = ThreadPoolExecutor(1, "job-model")
        self._mixed = MixedRoles()
        self._ahead: ReadingAhead | None = None

    def lost(self, processor_id: ProcessorId) -> None:
        """Give the tasks of this container, which cannot go home, to others as soon as possible."""
        self._mixed.lost(processor_id)
        self._is_news.set()

    @property
    def taken_over(self) -> ShownTakenOver:
        """The tasks that mixed containers have taken over under this driver."""
        return self._mixed.taken_over

    def heard(self, config: Config, at_once: str | None = None) -> None:
        """Take the configuration of the coordinator stream.

        ``at_once``: the digest of the values with which all containers restart together.
        """
        self._at_once = at_once
        if config != self._heard:
            self._heard = config
            self._is_news.set()

    async def run(self, job: RunningJob) -> None:
        """Follow stream and inputs for ever."""
        while True:
            self._is_news.clear()
            if job.may_change:
                await self._follow_places(job)
                await self._follow_inputs(job)
                await self._follow_topics()
                await self._follow_stream(job)
            try:
                await asyncio.wait_for(self._is_news.wait(), _POLL_S)
            except TimeoutError:
                continue

    def close(self) -> None:
        """Stop computing."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def shown(self) -> ShownConfiguration:
        """Return what is not applied and why, and which inputs were recreated or are refused."""
        return ShownConfiguration(
            version=self.job_models.version,
            pending=self._configuration.pending,
            fault=self._configuration.fault,
            inputs_begun_anew=self._begun_anew,
            topics_refused=self._topics_refused,
            reads_ahead={} if self._ahead is None else self._ahead.left,
        )

    # ------------------------------------------------------------------ configuration

    async def _follow_stream(self, job: RunningJob) -> None:
        stream, before = self._heard, self.job_models.model
        if stream is None or stream is self._settled:
            return
        pending, fault = self._configuration.pending, self._configuration.fault
        config = self._configuration.wanted(stream)
        for news in self._configuration.pending:
            if news not in pending:
                self._history.event("key-pending", **to_builtins(news))
        self._note_fault(fault)
        diff = ConfigDiff() if config is None else ConfigDiff.between(before.config, config)
        if config is None or diff.is_empty:
            await self._forget_ahead(job)
            if self._ahead is None:
                self._settled = stream
            return
        try:
            await self._reconfigure(job, config, diff)
        except (ConfigError, WireError) as error:
            self._configuration.refused(stream, error)
            self._note_fault(fault)

    def _note_fault(self, before: str | None) -> None:
        fault = self._configuration.fault
        if fault is not None and fault != before:
            self._history.event("configuration-refused", fault=fault)

    async def _reconfigure(self, job: RunningJob, config: Config, diff: ConfigDiff) -> None:
        if diff.is_of_tokens:
            self.job_models.reconfigured(config)
            self._history.event("tokens-changed", keys=list(diff.live))
            log.info("in force, without a new JobModel: %s", ", ".join(diff.live))
            return
        is_known = self._ahead is not None and self._ahead.config == config
        if is_known and await self._reads_ahead(job):
            return
        self._planner.places = places = job.places
        model = await self._computed(partial(self._planner.reconfigured, config))
        if model is None or not await self._knows_new_inputs(model):
            return
        if not is_known:
            before, now_s = self.job_models.model, time.monotonic()
            begun = partial(ReadingAhead.of, before, model, places, job.lags, now_s)
            self._ahead = await self._computed(begun)
            if self._ahead is not None and await self._reads_ahead(job):
                return
        names = (
            *diff.live,
            *diff.retunes_containers,
            *diff.restarts_containers,
            *diff.needs_redeploy,
        )
        rolling = self._rolling(job, model, diff)
        is_for_all = bool(diff.restarts_containers or diff.needs_redeploy) and rolling is None
        why = f"changed: {', '.join(names)}"
        await self._publish(job, model, why, restarts_all=is_for_all, rolling=rolling)
        if self._ahead is not None and self.job_models.model is model:
            self._history.event("read-ahead", **self._ahead.facts(time.monotonic()))
            self._ahead = None

    async def _knows_new_inputs(self, model: JobModel) -> bool:
        """Record the topics of inputs that the model in force lacks; False: Kafka did not answer.

        ConfigError: the job has read an input before, and its topic was recreated since.
        """
        before = self.job_models.model.partition_counts()
        new = model.partition_counts().keys() - before.keys()
        if not new:
            return True
        seen = await self._computed(partial(self._look, model.config))
        if seen is None:
            return False
        known, found = self._topics.ids(), {s: t for s, t in seen.topic_ids.items() if s in new}
        policy = keys.JOB_INPUT_RECREATED.read(model.config)
        for stream in recreated(known, found):
            raise refusal(stream, known[stream], found[stream], str(policy))
        await self._computed(partial(self._topics.write, found))
        self._inputs.topic_ids |= found
        return True

    def _rolling(self, job: RunningJob, model: JobModel, diff: ConfigDiff) -> RollingRestart | None:
        """Return the record by which one container restarts after the other; None: all at once.

        If tasks move, the JobModel itself stops their containers. A job that forgives no failure
        would end with the first one, so that nothing could be taken back.
        """
        before, names = self.job_models.model, diff.restarts_containers
        if not names or diff.needs_redeploy or changed_containers(before, model):
            return None
        if keys.CONTAINER_RETRY_COUNT.read(model.config) == 0:
            return None
        if is_at_once(self._at_once, names, model.config):
            return None
        version = self.job_models.version + 1
        return job.rolling.following(version, before.config, model.config, names)

    # ------------------------------------------------------------------ inputs

    async def _follow_topics(self) -> None:
        model, now_s = self.job_models.model, time.monotonic()
        interval_s = keys.JOB_MONITOR_INPUT_REGEX_MS.read(model.config) / 1000
        if now_s - self._topics_looked_s >= interval_s:
            self._topics_looked_s = now_s
            refused = await self._computed(partial(self._look_for_topics, model))
            self._topics_refused = self._topics_refused if refused is None else refused

    async def _follow_inputs(self, job: RunningJob) -> None:
        model = self.job_models.model
        interval_s = keys.JOB_MONITOR_PARTITION_CHANGE_MS.read(model.config) / 1000
        now_s = time.monotonic()
        if self._looked_s is not None and now_s - self._looked_s < interval_s:
            return
        seen = await self._computed(partial(self._look, model.config))
        if seen is None:
            return
        self._looked_s = now_s
        fault = self._inputs.fault(model, seen)
        if fault is not None and fault == self._suspected:
            self._fail(job, fault)
            return
        self._suspected = fault
        if fault is not None:
            log.warning("perhaps, and looked at again: %s", fault)
            self._looked_s = now_s - interval_s + min(_CONFIRM_S, interval_s)
            return
        await self._computed(partial(self._topics.write, self._inputs.topic_ids))
        grown = InputWatch.grown(model, seen.counts, TaskConfig.of(model.config).inputs)
        if grown is not None:
            await self._expand(job, grown, seen)

    async def _expand(self, job: RunningJob, grown: str, seen: InputsSeen) -> None:
        log.info("%s", grown)
        self._planner.places = job.places
        try:
            model = await self._computed(partial(self._planner.expanded, seen.counts))
            if model is None:
                self._looked_s = None
            elif model.containers != self.job_models.model.containers:
                await self._publish(job, model, grown)
        except (ConfigError, WireError) as error:
            also = ", and the job has state" if has_state(self.job_models.model.config) else ""
            self._fail(job, f"{grown}{also}: {error}")

    def _fail(self, job: RunningJob, story: str) -> None:
        log.error("%s", story)
        job.end_job(ShutdownRequested(JobResult.FAILED.value, story))

    # ------------------------------------------------------------------ mixed roles

    async def _follow_places(self, job: RunningJob) -> None:
        """Give lost tasks to containers with their standbys; deal standbys where containers run."""
        if not StandbyConfig.of(self.job_models.model.config).is_mixed:
            return
        count = len(self.job_models.model.containers)
        due = self._mixed.due(job.places, time.monotonic(), count)
        if due is None or (self._ahead is not None and not due.lost):
            return  # what is read ahead is for the places that tasks get soon
        self._planner.places = due.places
        found = await self._computed(partial(self._planner.failed_over, due.lost))
        if found is None:
            return
        before, after = self.job_models.model, found.model
        if self._ahead is not None:
            after = await self._computed(partial(self._ahead.over, after, due.places)) or after
        if after.containers != before.containers:
            await self._publish(job, after, due.why(found), is_by_itself=True)
        if after.containers == before.containers or self.job_models.model is after:
            self._mixed.done(due, found, self.job_models.version)
            if due.lost:
                self._history.event(
                    "tasks-taken-over",
                    version=self.job_models.version,
                    processors=sorted(due.lost),
                    lost=found.lost,
                    unbacked=found.unbacked,
                )

    async def _reads_ahead(self, job: RunningJob) -> bool:
        """Publish what must be in force before tasks move; False: they may move now."""
        ahead, before, places = self._ahead, self.job_models.model, job.places
        if ahead is None:
            return False
        now_s = time.monotonic()
        if await self._computed(partial(ahead.is_over, before, places, job.lags, now_s)):
            return False
        after = await self._computed(partial(ahead.version, before, places, now_s))
        if after is not None:
            await self._publish(job, after, ahead.why, is_by_itself=True)
            if self.job_models.model is after:
                ahead.done(after, places)
        return True

    async def _forget_ahead(self, job: RunningJob) -> None:
        """Take back what is read ahead for a change that is wanted no more."""
        if self._ahead is None:
            return
        before = self.job_models.model
        after = taken_back(before, job.places)
        if after.containers != before.containers:
            await self._publish(job, after, "no task will move", is_by_itself=True)
        if after.containers == before.containers or self.job_models.model is after:
            self._ahead = None

    # ------------------------------------------------------------------ both

    async def _publish(
        self,
        job: RunningJob,
        model: JobModel,
        why: str,
        *,
        restarts_all: bool = False,
        rolling: RollingRestart | None = None,
        is_by_itself: bool = False,
    ) -> None:
        save = partial(
            self._planner.saved,
            model,
            why,
            restarts_all=restarts_all,
            rolling=rolling,
            is_by_itself=is_by_itself,
        )
        change = await self._computed(save)
        if change is None:
            return
        changed = changed_containers(self.job_models.model, change.model)
        log.info(
            "JobModel version %d, %s: %s",
            change.version,
            change.why,
            _restarts(change) or _names(changed),
        )
        note_change(self._history, self.job_models.model, change)
        if await job.publish(change):
            job.configured(change.model.config)

    async def _computed(self, call: Callable[[], _T]) -> _T | None:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, call)
        except UnavailableError as error:
            log.warning("the JobModel in force stays for now: %s", error)
            return None


def _restarts(change: ModelChange) -> str:
    if change.restarts_all:
        return "every container restarts"
    return "one container restarts after the other" if change.rolling is not None else ""


def _names(changed: Mapping[ProcessorId, object]) -> str:
    return f"new tasks for {', '.join(changed)}" if changed else "no container changes"
