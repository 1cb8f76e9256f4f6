"""New topics that match a regular expression of a running job: those that fit become inputs.

``NewTopics`` asks Kafka. The application master and the leader of a standalone job both judge so.

Source: Samza 1.8, StreamRegexMonitor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, WireError
from homeport.config.loading.regex_topics import TopicPattern, TopicsOf, new_inputs, with_inputs
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka.topics import topics_of


class NewTopics:
    """Judges new topics; each refusal is a warning in ``log``, once.

    ``topics``: returns those of a system. ``refused``: {topic that became no input at the last
    judgement: a line with rule and remedy}; its key is None where none could be judged.
    """

    def __init__(self, log: logging.Logger, topics: TopicsOf = topics_of) -> None:
        self._log = log
        self._topics = topics
        self.refused: Mapping[SystemStream | None, str] = {}

    def joined(self, config: Config, check: Callable[[Config], object]) -> Config:
        """Return ``config`` with each new topic that fits beside those before it.

        ``check``: raises ConfigError where a configuration does not fit the job, WireError where
        no record shows that.
        UnavailableError: Kafka did not answer.
        """
        try:
            found = new_inputs(config, self._topics)
        except ConfigError as error:
            self._refuse({None: f"no new topic becomes an input: {error}"})
            return config
        refused: dict[SystemStream | None, str] = {}
        taken: dict[SystemStream, TopicPattern] = {}
        for stream, pattern in found.items():
            try:
                check(with_inputs(config, {**taken, stream: pattern}))
            except (ConfigError, WireError) as error:
                key = keys.JOB_CONFIG_REWRITER_REGEX.named(pattern.name)
                refused[stream] = f"{stream} matches {key}, and becomes no input: {error}"
            else:
                taken[stream] = pattern
        self._refuse(refused)
        if taken:
            names = ", ".join(map(str, taken))
            self._log.info("new topics match, and become inputs: %s", names)
        return with_inputs(config, taken)

    def _refuse(self, refused: Mapping[SystemStream | None, str]) -> None:
        before, self.refused = self.refused, refused
        for stream, line in refused.items():
            if before.get(stream) != line:
                self._log.warning("%s", line)
