"""Topics that become inputs, because a regular expression of the job matches their names.

PURE. Source: Samza 1.8, ``RegExTopicGenerator`` and ``StreamRegexMonitor``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.java_names import Kind, short_name
from homeport.config.system_stream import SystemStream

TopicsOf = Callable[[Config, str], Collection[str]]
"""The topics of a system, by its name."""
REGEX_TOPICS = "regex-topics"
_INTERNAL_PREFIX = "__"


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """The rewriter ``name``: topics of ``system`` with names of that pattern are inputs."""

    name: str
    system: str
    pattern: re.Pattern[str]

    @staticmethod
    def of(config: Config, name: str) -> TopicPattern:
        """Return that rewriter; ConfigError: a property is missing, or no regular expression."""
        key = keys.JOB_CONFIG_REWRITER_REGEX.named(name)
        text = config.require(key, "write a regular expression for whole topic names")
        system_key = keys.JOB_CONFIG_REWRITER_SYSTEM.named(name)
        system = config.require(system_key, "name the system whose topics are meant")
        try:
            return TopicPattern(name, system, re.compile(text))
        except re.error as error:
            rule = f"it is no regular expression ({error})"
            raise ConfigError(key, text, rule, "correct it") from None

    def matching(self, topics_of: TopicsOf, config: Config) -> tuple[SystemStream, ...]:
        """Return the topics that match, in order.

        Topics that begin with two underscores are Kafka's and the jobs' own, and never match.
        """
        found = (
            topic
            for topic in topics_of(config, self.system)
            if not topic.startswith(_INTERNAL_PREFIX) and self.pattern.fullmatch(topic)
        )
        return tuple(SystemStream(self.system, topic) for topic in sorted(found))


def with_inputs(config: Config, found: Mapping[SystemStream, TopicPattern]) -> Config:
    """Return ``config`` with these inputs, each with its rewriter's properties of a stream.

    What the file has of one stream wins over what the rewriter has of all.
    """
    if not found:
        return config
    inputs = sorted({*keys.TASK_INPUTS.read(config), *map(str, found)})
    added = {
        f"systems.{stream.system}.streams.{stream.stream}.{key}": value
        for stream, pattern in found.items()
        for key, value in config.subset(
            keys.JOB_CONFIG_REWRITER_CONFIG.named(pattern.name, "")
        ).items()
    }
    return Config({**added, **config, keys.TASK_INPUTS.name: ",".join(inputs)})


def with_matching(config: Config, streams: Collection[SystemStream]) -> Config:
    """Return ``config`` with those of ``streams`` that match a rewriter of it, and that it lacks.

    ConfigError: a rewriter lacks a property.
    """

    def of_system(_: Config, system: str) -> Collection[str]:
        return [stream.stream for stream in streams if stream.system == system]

    return with_inputs(config, new_inputs(config, of_system))


def new_inputs(config: Config, topics_of: TopicsOf) -> dict[SystemStream, TopicPattern]:
    """Return the topics that match a rewriter of ``config`` and are no input of it, in order.

    ConfigError: a rewriter lacks a property. UnavailableError: Kafka does not answer.
    """
    broadcast = (text.partition("#")[0] for text in keys.TASK_BROADCAST_INPUTS.read(config))
    known = {*keys.TASK_INPUTS.read(config), *broadcast}
    found: dict[SystemStream, TopicPattern] = {}
    for name in keys.JOB_CONFIG_REWRITERS.read(config):
        kind = config.get_str(keys.JOB_CONFIG_REWRITER_CLASS.named(name), "")
        if short_name(Kind.REWRITER, kind) == REGEX_TOPICS:
            pattern = TopicPattern.of(config, name)
            found |= dict.fromkeys(pattern.matching(topics_of, config), pattern)
    return {stream: found[stream] for stream in sorted(found) if str(stream) not in known}
