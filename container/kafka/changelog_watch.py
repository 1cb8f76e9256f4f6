"""ChangelogWatch: whether the changelogs are still the topics that the state was restored from.

Kafka addresses topics by name: a writer does not notice that one was deleted and made anew, and
would leave the rest of its changes in a topic that lacks all before them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from homeport.config.errors import StoreError, UnavailableError
from homeport.config.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.changelog_topics import ChangelogTopicRecord, lost_state

_LOG = logging.getLogger(__name__)

_TIMEOUT_S = 5.0


class ChangelogWatch:
    """Asks the brokers for the changelogs' ids.

    Args:
        systems: by name.
        stores: {changelog: store}.
    """

    def __init__(
        self, systems: Mapping[str, SystemConfig], stores: Mapping[SystemStream, str]
    ) -> None:
        self._stores = stores
        names = sorted({changelog.system for changelog in stores})
        self._admins = {name: TopicAdmin(systems[name], _TIMEOUT_S) for name in names}
        self._known: dict[SystemStream, ChangelogTopicRecord] = {}

    def begin(self, recorded: Mapping[SystemStream, ChangelogTopicRecord]) -> None:
        """The changelogs are those that hold the job's state; from now on they are watched.

        Args:
            recorded: what the coordinator stream says of them; of others there is no state.

        Raises:
            ConfigError: one is not.
            UnavailableError: Kafka does not answer.
        """
        ids = self._ids()
        for changelog in self._stores:
            lost = lost_state(changelog, recorded.get(changelog), ids.get(changelog))
            if lost is not None:
                raise lost
        self._known = {
            changelog: ChangelogTopicRecord(topic_id, self._stores[changelog])
            for changelog, topic_id in ids.items()
        }

    def check(self) -> None:
        """They still are, as far as can be told: a Kafka that does not answer says nothing.

        Raises:
            StoreError: one was deleted, or made anew.
        """
        try:
            ids = self._ids()
        except UnavailableError as error:
            _LOG.debug("the changelogs could not be looked at: %s", error)
            return
        for changelog, record in self._known.items():
            lost = lost_state(changelog, record, ids.get(changelog))
            if lost is not None:
                raise StoreError(f"while the container ran, {lost}")

    def _ids(self) -> dict[SystemStream, str]:
        return {
            SystemStream(system, name): topic_id
            for system, admin in self._admins.items()
            for name, topic_id in admin.existing_ids(
                sorted(c.stream for c in self._stores if c.system == system)
            ).items()
        }
