"""Typed view of how single records are handed to a StreamTask, and what becomes of bad ones."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import stream_named
from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream

ALL_EXCEPTIONS = "*"


@dataclass(frozen=True)
class RecordsConfig:
    """What becomes of records that cannot be used.

    ``ignored_exceptions``: class names, with or without their module; ``*`` stands for all.
    ``dead_letter``: where undecodable records go that are dropped; None: nowhere.
    ``max_concurrency``: how many calls of ``process`` are under way in a container at once.
    """

    ignored_exceptions: frozenset[str]
    drop_undecodable: bool
    dead_letter: SystemStream | None
    max_concurrency: int = 1

    @staticmethod
    def of(config: Config) -> RecordsConfig:
        """Return the view of ``config``; ConfigError where its keys contradict each other."""
        drop = keys.TASK_DROP_DESERIALIZATION_ERRORS.read(config)
        return RecordsConfig(
            ignored_exceptions=frozenset(keys.TASK_IGNORED_EXCEPTIONS.read(config)),
            drop_undecodable=drop,
            dead_letter=_dead_letter(config, drop=drop),
            max_concurrency=keys.TASK_MAX_CONCURRENCY.read(config),
        )


def _dead_letter(config: Config, *, drop: bool) -> SystemStream | None:
    key, drop_key = keys.TASK_DEAD_LETTER_STREAM.name, keys.TASK_DROP_DESERIALIZATION_ERRORS.name
    text = keys.TASK_DEAD_LETTER_STREAM.read(config)
    if text is None:
        return None
    stream = stream_named(key, text, "bad-records")
    if not drop:
        raise ConfigError(
            key,
            text,
            f"only records that are dropped go there, and {drop_key} is false",
            f"set {drop_key}=true, or remove the key",
        )
    return stream
