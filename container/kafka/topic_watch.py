"""TopicWatch: whether changelogs, checkpoint topic and inputs are those from the container's start.

Kafka addresses topics by name. A writer does not notice that its topic was deleted and recreated,
and would write the rest of its changes to a topic that lacks those before. A reader gets no records
and no error from a deleted topic, and other records from a recreated one.
"""

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial

from homeport.config.errors import ConfigError, StoreError, UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.topics import (
    ChangelogTopicManager,
    ChangelogTopicRecord,
    CheckpointTopicManager,
    InputTopicManager,
    lost_input,
    lost_positions,
    lost_state,
)

_LOG = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
_REST_S = 60.0
"""The watch does not ask a system again for this time after it did not answer."""

Lost = Callable[[str | None], ConfigError | None]
"""From a topic's present id, None if it is gone, to the error; None where it is the same topic."""


class TopicWatch:
    """Requests the ids of the topics of state, input positions and input.

    ``stores`` {changelog: store}. ``checkpoints``: the checkpoint topic; None: the job has none.
    ``topics_of``: returns what asks a system, with so many seconds for an answer.
    """

    def __init__(
        self,
        systems: Mapping[str, SystemConfig],
        stores: Mapping[SystemStream, str],
        checkpoints: SystemStream | None,
        inputs: Collection[SystemStream],
        topics_of: Callable[[SystemConfig, float], TopicAdmin] = TopicAdmin,
    ) -> None:
        self._stores = stores
        self._checkpoints = checkpoints
        self._inputs = sorted(inputs)
        held = [*stores] if checkpoints is None else [*stores, checkpoints]
        self._topics = [*held, *self._inputs]
        names = sorted({topic.system for topic in self._topics})
        self._admins = {name: topics_of(systems[name], _TIMEOUT_S) for name in names}
        self._watched: dict[SystemStream, Lost] = {}
        self._away_until_s: dict[str, float] = {}

    def begin(self, stream: CoordinatorStream) -> None:
        """Check the topics of state, positions and input, and watch them from now on.

        Where ``stream``, read to its head, has no id of a topic, any id is right.

        Raises:
            ConfigError: a topic is another one.
            UnavailableError: Kafka does not answer.
        """
        ids = {t: i for system in self._admins for t, i in self._ids_of(system).items()}
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
        read = InputTopicManager(stream).ids()
        for topic in self._inputs:
            first = read.get(topic, ids.get(topic))
            _require(lost_input(topic, first, ids.get(topic)))
            self._watched[topic] = partial(lost_input, topic, first)

    def check(self) -> None:
        """Check that the topics are the same; a Kafka that does not answer proves nothing.

        Raises:
            StoreError: one was deleted, or recreated.
        """
        for system in self._admins:
            if time.monotonic() < self._away_until_s.get(system, -math.inf):
                continue
            try:
                ids = self._ids_of(system)
            except UnavailableError as error:
                _LOG.debug("the topics of %s could not be looked at: %s", system, error)
                # Each request to a Kafka that is away holds up the container.
                self._away_until_s[system] = time.monotonic() + _REST_S
                continue
            for topic, lost_with in self._watched.items():
                lost = lost_with(ids.get(topic)) if topic.system == system else None
                if lost is not None:
                    raise StoreError(f"while the container ran, {lost}")

    def _ids_of(self, system: str) -> dict[SystemStream, str]:
        names = sorted(topic.stream for topic in self._topics if topic.system == system)
        found = self._admins[system].existing_ids(names)
        return {SystemStream(system, name): topic_id for name, topic_id in found.items()}


def _require(lost: ConfigError | None) -> None:
    if lost is not None:
        raise lost
