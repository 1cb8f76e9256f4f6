"""TopicWatch: new topics that match the job's regular expressions become inputs, by its rules.

SHELL: it asks Kafka, and writes the keys that ``homeport config set`` would write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from homeport.appmaster.job_model.live_configuration import has_state
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.loading.regex_topics import TopicsOf
from homeport.job_coordinator.config_change import checked_change, require_model
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.topics import topics_of
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.planning.new_topics import NewTopics
from homeport.job_coordinator.planning.next_model import previous_assignment

log = logging.getLogger("driver")
_INPUTS = keys.TASK_INPUTS.name


class TopicWatch:
    """Looks for new topics of a running job.

    ``stream``: the job's, as of its last catch-up. ``file``: the deployment's own configuration.
    ``check_model``: as ``require_model``.
    """

    def __init__(
        self,
        stream: CoordinatorStream,
        file: Config,
        topics: TopicsOf = topics_of,
        check_model: Callable[..., None] = require_model,
    ) -> None:
        self._stream = stream
        self._file = file
        self._new = NewTopics(log, topics)
        self._check_model = check_model

    def look(self, model: JobModel) -> tuple[str, ...]:
        """Write the inputs that fit the job with ``model``; return why others do not, a line each.

        UnavailableError: Kafka did not answer.
        """
        manager = ConfigManager(self._stream)
        if _INPUTS in manager.written():
            return ()  # set by hand: that list counts, as at a submission
        before = manager.deployed()
        config = self._file.merged(before)
        ids = InputTopicManager(self._stream).ids()

        def check(wanted: Config) -> None:
            changes, assigned = _changes(config, wanted), previous_assignment(self._stream)
            checked_change(
                *(_INPUTS, changes.pop(_INPUTS), before, self._file),
                has_state=has_state(model.config),
                check_model=lambda found: self._check_model(found, assigned, ids),
                also=changes,
            )

        changes = _changes(config, self._new.joined(config, check))
        if changes:
            self._stream.write([wire.set_config(key, value) for key, value in changes.items()])
        return tuple(self._new.refused.values())


def _changes(before: Config, after: Config) -> dict[str, str]:
    """Return the keys that ``after`` has beside those of ``before``, or with another value."""
    return {key: value for key, value in after.items() if before.get(key) != value}
