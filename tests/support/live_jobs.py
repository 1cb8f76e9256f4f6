"""A running job whose job coordinator is the real one: its Kafka, and what was done to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.protocol.events import ShutdownRequested
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.live_configuration import LiveConfiguration
from homeport.appmaster.job_model.live_job_coordinator import LiveJobCoordinator
from homeport.appmaster.job_model.model_change import ModelChange, ModelPlanner
from homeport.appmaster.job_model.reading_ahead import Lags
from homeport.appmaster.job_model.topic_watch import TopicWatch
from homeport.appmaster.upgrade.rolling import Reconfigured, following
from homeport.appmaster.yarn.submission_file import Submitted
from homeport.config.config import Config
from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.mixed_standbys import NOWHERE, Places
from homeport.job_coordinator.grouper.one_time_configuration import require_same_tasks
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.metadata.recorded_model import model_messages
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream
from homeport.job_coordinator.model.upgrade import RollingRestart
from homeport.job_coordinator.planning.input_watch import InputsSeen

IN = SystemStream("kafka", "in")
COUNT = "job.container.count"
MONITOR = "job.coordinator.monitor-partition-change.frequency.ms"
LIMIT_S = 10.0
FILE = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "job.host-affinity.enabled": "true",
        COUNT: "3",
        MONITOR: "1",
        "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
        "systems.kafka.consumer.bootstrap.servers": "b:1",
        "task.class": "m:C",
        "task.inputs": "kafka.in",
    }
)
STORE = {
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.s",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "json",
}


class Job:
    """A running job: its coordinator, its Kafka, and what the coordinator did to it."""

    def __init__(self, folder: Path, file: Config = FILE) -> None:
        self.is_changeable = True
        self.is_refusing = False
        self.where = NOWHERE
        self.lacking: dict[TaskName, int] = {}
        self.rounds = 0
        self.changes: list[ModelChange] = []
        self.configured_with: list[Config] = []
        self.ends: list[ShutdownRequested] = []
        self.file = file
        self.partitions = 6
        self.existing: set[str] = set()
        self.others: dict[SystemStream, int] = {}
        self.ids: dict[SystemStream, str] = {IN: "id"}
        self.is_away = False
        self.write_fault: WireError | None = None
        self.stream = InMemoryCoordinatorStream()
        self.job_models = JobModelStore(folder)
        self.folder = folder
        first = calculate_job_model(file, {IN: 6}, NOTHING)
        self._stated(first)
        self.job_models.enter(1, first)
        self.configuration = LiveConfiguration(Submitted(file, file))
        self.live = self.coordinator()

    def coordinator(self, look: Callable[[Config], InputsSeen] | None = None) -> LiveJobCoordinator:
        """Make it from what is there now."""
        return LiveJobCoordinator(
            configuration=self.configuration,
            job_models=self.job_models,
            planner=ModelPlanner(self.stream, self.job_models, self.counts, lambda *_: None),
            look=look or self.look,
            history=HistoryWriter(self.folder / "history", "driver", "nm1", 64),
            topics=InputTopicManager(self.stream, 1),
            look_for_topics=self.topic_watch().look,
        )

    def topic_watch(self) -> TopicWatch:
        """Make the watch of its topics."""
        return TopicWatch(self.stream, self.file, self.topics, self.check_model)

    def _stated(self, model: JobModel) -> None:
        self.stream.write(model_messages(model, self.stream, has_standby_changelogs=True))
        self.stream.catch_up()

    def counts(self, _: Config) -> Mapping[SystemStream, int]:
        """Return Kafka's answer."""
        if self.is_away:
            raise UnavailableError("Kafka is away")
        return {IN: self.partitions, **self.others}

    def topics(self, _: Config, system: str) -> Collection[str]:
        """Return the topics that there are."""
        if self.is_away:
            raise UnavailableError("Kafka is away")
        return self.existing | {f"of {system}"}

    def check_model(self, config: Config, before: PreviousAssignment, _ids: object) -> None:
        """As ``require_model``, with Kafka's answer."""
        require_same_tasks(config, before, calculate_job_model(config, self.counts(config), before))

    def look(self, config: Config) -> InputsSeen:
        """What the monitor sees."""
        return InputsSeen(self.counts(config), dict.fromkeys(self.others, "id") | self.ids)

    @property
    def may_change(self) -> bool:
        """Return the driver's answer, asked once in each round of the coordinator."""
        self.rounds += 1
        return self.is_changeable

    @property
    def places(self) -> Places:
        """Where containers run."""
        return self.where

    @property
    def lags(self) -> Lags:
        """What the standbys lack."""
        return self.lacking

    @property
    def rolling(self) -> Job:
        """As the driver's."""
        return self

    def following(
        self, version: int, before: Config, after: Config, names: Collection[str]
    ) -> RollingRestart:
        """As the driver's, without one under way."""
        return following(None, Reconfigured("app", version, before, after, names, 1000))

    async def publish(self, change: ModelChange) -> bool:
        """As the driver does, unless the job ends."""
        if not self.is_changeable or self.is_refusing:
            return False
        if self.write_fault is not None:
            raise self.write_fault
        self._stated(change.model)
        self.job_models.enter(change.version, change.model)
        self.changes.append(change)
        return True

    def configured(self, config: Config) -> None:
        """Remembered."""
        self.configured_with.append(config)

    def end_job(self, request: ShutdownRequested) -> None:
        """Remembered; nothing is changed any more."""
        self.ends.append(request)
        self.is_changeable = False

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when the condition holds."""
        async with asyncio.timeout(LIMIT_S):
            while not condition():  # noqa: ASYNC110 - the coordinator sends no signal
                await asyncio.sleep(0.01)

    async def some_rounds(self) -> None:
        """The coordinator has looked at everything twice at least."""
        last = self.rounds + 3
        await self.until(lambda: self.rounds >= last)

    def play(self, scene: Callable[[], Awaitable[None]]) -> None:
        """The coordinator runs while the scene is played."""

        async def playing() -> None:
            running = asyncio.create_task(self.live.run(self))
            try:
                await scene()
                assert not running.done(), running
            finally:
                running.cancel()
                self.live.close()

        asyncio.run(playing())

    def events(self, name: str) -> list[dict[str, Any]]:
        """The history's events of that name."""
        files = (self.folder / "history").glob("*.jsonl")
        lines = (json.loads(x) for f in files for x in f.read_text().splitlines())
        return [line for line in lines if line["event"] == name]
