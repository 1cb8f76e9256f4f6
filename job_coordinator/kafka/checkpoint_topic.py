"""The job's checkpoint topic: the check that it still has the input positions, and its creation.

Source: Samza 1.8, ``KafkaCheckpointManager``; safety S6.
"""

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.topics import TopicAdmin, checkpoint_topic_spec
from homeport.job_coordinator.metadata.topics import CheckpointTopicManager, lost_positions


class CheckpointTopic:
    """The checkpoint topic of one job; it does nothing if checkpoints are turned off.

    ``stream``: read to its head.

    UnavailableError: (from every method) Kafka did not answer.
    """

    def __init__(self, config: Config, stream: CoordinatorStream) -> None:
        self._task = TaskConfig.of(config)
        self._manager = CheckpointTopicManager(stream)
        self._topic = SystemStream(self._task.checkpoint_system, self._task.checkpoint_topic)
        self._admin = TopicAdmin(SystemConfig.of(config, self._topic.system))

    def check(self) -> None:
        """Check that the topic with the job's input positions exists, if there was one.

        ConfigError: the topic is gone, or was recreated.
        """
        if self._task.checkpoint_enabled:
            self._require_same(self._topic_id())

    def make(self) -> None:
        """Make the topic, and write its id into the stream; ``check`` comes first.

        ConfigError: it exists in another shape, or was recreated since ``check``.
        """
        if not self._task.checkpoint_enabled:
            return
        self._admin.ensure(checkpoint_topic_spec(self._task))
        topic_id = self._topic_id()
        self._require_same(topic_id)
        if topic_id is not None:
            self._manager.write(self._topic, topic_id)

    def end(self) -> int | None:
        """Return the offset after the last record, open transactions included; None: no topic."""
        if not self._task.checkpoint_enabled:
            return None
        return self._admin.end_offset(self._topic.stream, 0)

    def _topic_id(self) -> str | None:
        return self._admin.existing_ids([self._topic.stream]).get(self._topic.stream)

    def _require_same(self, topic_id: str | None) -> None:
        lost = lost_positions(self._topic, self._manager.read(self._topic), topic_id)
        if lost is not None:
            raise lost
