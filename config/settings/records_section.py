"""Typed view of how single records are handed to a StreamTask, and what becomes of bad ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import stream_named, values_of
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
    drop_undecodable: Annotated[bool, keys.TASK_DROP_DESERIALIZATION_ERRORS]
    dead_letter: SystemStream | None
    max_concurrency: Annotated[int, keys.TASK_MAX_CONCURRENCY] = 1

    @staticmethod
    def of(config: Config) -> RecordsConfig:
        """Return the view of ``config``; ConfigError where its keys contradict each other."""
        return RecordsConfig(
            ignored_exceptions=frozenset(keys.TASK_IGNORED_EXCEPTIONS.read(config)),
            dead_letter=_dead_letter(config),
            **values_of(RecordsConfig, config),
        )


def _dead_letter(config: Config) -> SystemStream | None:
    key, drop = keys.TASK_DEAD_LETTER_STREAM, keys.TASK_DROP_DESERIALIZATION_ERRORS
    text = key.read(config)
    if text is None:
        return None
    stream = stream_named(key.name, text, "bad-records")
    if not drop.read(config):
        rule = f"only records that are dropped go there, and {drop.name} is false"
        raise key.error(text, rule, f"set {drop.name}=true, or remove the key")
    return stream
