"""TopicWatch: whether changelogs and checkpoint topic are those that the container began with.

Kafka addresses topics by name: a writer does not notice that one was deleted and recreated, and
would leave the rest of its changes in a topic that lacks all before them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from homeport.config.errors import ConfigError, StoreError, UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.changelog_topics import (
    ChangelogTopicManager,
    ChangelogTopicRecord,
    lost_state,
)
from homeport.job_coordinator.metadata.checkpoint_topic import (
    CheckpointTopicManager,
    lost_positions,
)

_LOG = logging.getLogger(__name__)

_TIMEOUT_S = 5.0


Lost = Callable[[str | None], ConfigError | None]
"""What there is to say of a topic by its id now, None: it is gone; None where it is the same."""


class TopicWatch:
    """Asks the brokers for the ids of the topics that hold state and input positions.

    Args:
        systems: by name.
        stores: {changelog: store}.
        checkpoints: the checkpoint topic; None: the job has none.
    """

    def __init__(
        self,
        systems: Mapping[str, SystemConfig],
        stores: Mapping[SystemStream, str],
        checkpoints: SystemStream | None,
    ) -> None:
        self._stores = stores
        self._checkpoints = checkpoints
        self._topics = [*stores] if checkpoints is None else [*stores, checkpoints]
        names = sorted({topic.system for topic in self._topics})
        self._admins = {name: TopicAdmin(systems[name], _TIMEOUT_S) for name in names}
        self._watched: dict[SystemStream, Lost] = {}

    def begin(self, stream: CoordinatorStream) -> None:
        """The topics are those that hold state and positions; from now on they are watched.

        Args:
            stream: read to its head; of a topic that it does not know, any is right.

        Raises:
            ConfigError: one is not.
            UnavailableError: Kafka does not answer.
        """
        ids = self._ids()
        changelogs = ChangelogTopicManager(stream).read()
        for topic, store in self._stores.items():
            _require(lost_state(topic, changelogs.get(topic), ids.get(topic)))
            if topic in ids:
                record = ChangelogTopicRecord(ids[topic], store)
                self._watched[topic] = partial(lost_state, topic, record)
        checkpoints = self._checkpoints
        if checkpoints is not None:
            recorded = CheckpointTopicManager(stream).read(checkpoints)
            topic_id = ids.get(checkpoints)
            _require(lost_positions(checkpoints, recorded, topic_id))
            self._watched[checkpoints] = partial(lost_positions, checkpoints, topic_id)

    def check(self) -> None:
        """They still are, as far as is known: a Kafka that does not answer says nothing.

        Raises:
            StoreError: one was deleted, or recreated.
        """
        try:
            ids = self._ids()
        except UnavailableError as error:
            _LOG.debug("the topics of the state could not be looked at: %s", error)
            return
        for topic, lost_with in self._watched.items():
            lost = lost_with(ids.get(topic))
            if lost is not None:
                raise StoreError(f"while the container ran, {lost}")

    def _ids(self) -> dict[SystemStream, str]:
        return {
            SystemStream(system, name): topic_id
            for system, admin in self._admins.items()
            for name, topic_id in admin.existing_ids(
                sorted(t.stream for t in self._topics if t.system == system)
            ).items()
        }


def _require(lost: ConfigError | None) -> None:
    if lost is not None:
        raise lost
