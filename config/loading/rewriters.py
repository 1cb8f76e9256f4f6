"""Rewriters: what changes a configuration after it was read and before anything looks at it.

``job.config.rewriters`` names them in the order in which they are applied, over the file and the
overrides. Two of Samza's are here; others are the job's own, ``module:Class``, imported from
PYTHONPATH: a class with ``rewrite(name, config)``, which returns the whole configuration.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError, in_one_line
from homeport.config.java_names import Kind, is_user_class, known_names, short_name
from homeport.config.loading.regex_topics import REGEX_TOPICS, TopicPattern, TopicsOf, with_inputs

_ENVIRONMENT_PREFIX = "SAMZA_"


def rewritten(config: Config, environment: Mapping[str, str], topics_of: TopicsOf | None) -> Config:
    """Return ``config`` after all its rewriters.

    Args:
        config: file and overrides.
        environment: this process's environment.
        topics_of: asks Kafka; None: inputs by regular expression are left out, for a command that
            does not need to know them.

    ConfigError: a rewriter is not declared, not known, or fails.
    UnavailableError: Kafka does not answer.
    """
    for name in keys.JOB_CONFIG_REWRITERS.read(config):
        key = keys.JOB_CONFIG_REWRITER_CLASS.named(name)
        value = config.require(key, "write module:Class, environment or regex-topics")
        kind = short_name(Kind.REWRITER, value)
        if kind == "environment":
            config = _with_environment(config, environment)
        elif kind == REGEX_TOPICS:
            config = config if topics_of is None else _with_topics(config, name, topics_of)
        elif is_user_class(value):
            config = _by_the_jobs_own(config, name, key, value)
        else:
            raise ConfigError(
                key,
                value,
                "no such rewriter is known",
                f"write module:Class, or {' or '.join(known_names(Kind.REWRITER))}",
            )
    return config


def _with_environment(config: Config, environment: Mapping[str, str]) -> Config:
    found = {
        name.removeprefix(_ENVIRONMENT_PREFIX).lower().replace("_", "."): (name, value)
        for name, value in environment.items()
        if name.startswith(_ENVIRONMENT_PREFIX) and name != _ENVIRONMENT_PREFIX
    }
    for key in config:
        if key not in found and key.lower() in found:
            raise ConfigError(
                key,
                config[key],
                f"{found[key.lower()][0]} of the environment means {key.lower()}",
                "write the key in lower case, or take the variable away",
            )
    return config.merged({key: value for key, (_, value) in found.items()})


def _with_topics(config: Config, name: str, topics_of: TopicsOf) -> Config:
    """Make inputs of the topics that match, each with the rewriter's properties of a stream."""
    pattern = TopicPattern.of(config, name)
    found = pattern.matching(topics_of, config)
    known = keys.TASK_INPUTS.read(config)
    for stream in found:
        if str(stream) in known:
            raise ConfigError(
                keys.JOB_CONFIG_REWRITER_REGEX.named(name),
                pattern.pattern.pattern,
                f"it matches {stream}, which {keys.TASK_INPUTS.name} names already",
                "take it out of one of the two",
            )
    return with_inputs(config, dict.fromkeys(found, pattern))


def _by_the_jobs_own(config: Config, name: str, key: str, value: str) -> Config:
    try:
        result: Any = _load(value)().rewrite(name, config)
    except (HomeportError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - the user's code may raise anything, SystemExit too
        raise ConfigError(
            key,
            value,
            f"it fails ({in_one_line(error)})",
            "correct it, and see that PYTHONPATH has its module",
        ) from None
    if not isinstance(result, Mapping) or not all(
        isinstance(part, str) for item in result.items() for part in item
    ):
        raise ConfigError(
            key,
            value,
            "rewrite(name, config) must return a mapping of text to text",
            "return the whole configuration, such as {**config, 'a.key': 'its value'}",
        )
    return Config(result)


def _load(name: str) -> Any:  # noqa: ANN401 - whatever the module holds under the name
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
