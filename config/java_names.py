"""The one table of Samza's Java class names and our short names for the same things.

Both forms are accepted wherever a class is configured. Where a Java name is part of bytes
(checkpoint keys), the Java name is written. Only what this version has is in the table: anything
else is refused before a job starts. Task and pipeline classes are the user's, ``module:Name``;
groupers and serdes may be the user's too.
"""

import re
from enum import Enum

from homeport.config.errors import ConfigError
from homeport.config.storage_engines import STORAGE_ENGINES

_USER_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_DOTTED_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_SAMZA = "org.apache.samza."


class Kind(Enum):
    """What a configured class is for; each kind has its own part of the table."""

    SSP_GROUPER = "grouper of partitions into tasks"
    TASK_NAME_GROUPER = "grouper of tasks into containers"
    SERDE = "serde"
    STORE = "store factory"
    CHECKPOINT = "checkpoint factory"
    SYSTEM = "system factory"
    REWRITER = "rewriter of the configuration"


ALL_SSP_TO_SINGLE_TASK = "all-ssp-to-single-task"
"""The grouper of partitions with which every task reads everything."""
GROUP_BY_PARTITION = "group-by-partition"
"""The one with which a task reads the same partition of each input."""

_TABLE: dict[Kind, dict[str, str]] = {
    Kind.SSP_GROUPER: {
        GROUP_BY_PARTITION: "org.apache.samza.container.grouper.stream.GroupByPartitionFactory",
        "group-by-system-stream-partition": (
            "org.apache.samza.container.grouper.stream.GroupBySystemStreamPartitionFactory"
        ),
        ALL_SSP_TO_SINGLE_TASK: (
            "org.apache.samza.container.grouper.stream.AllSspToSingleTaskGrouperFactory"
        ),
    },
    Kind.TASK_NAME_GROUPER: {
        "group-by-container-count": (
            "org.apache.samza.container.grouper.task.GroupByContainerCountFactory"
        ),
        "group-by-container-ids": (
            "org.apache.samza.container.grouper.task.GroupByContainerIdsFactory"
        ),
        "single-container": "org.apache.samza.container.grouper.task.SingleContainerGrouperFactory",
    },
    Kind.SERDE: {
        "string": "org.apache.samza.serializers.StringSerdeFactory",
        "json": "org.apache.samza.serializers.JsonSerdeFactory",
        "bytes": "org.apache.samza.serializers.ByteSerdeFactory",
        "integer": "org.apache.samza.serializers.IntegerSerdeFactory",
        "long": "org.apache.samza.serializers.LongSerdeFactory",
        "double": "org.apache.samza.serializers.DoubleSerdeFactory",
    },
    Kind.STORE: {name: engine.java_name for name, engine in STORAGE_ENGINES.items()},
    Kind.CHECKPOINT: {"kafka": "org.apache.samza.checkpoint.kafka.KafkaCheckpointManagerFactory"},
    Kind.SYSTEM: {"kafka": "org.apache.samza.system.kafka.KafkaSystemFactory"},
    Kind.REWRITER: {
        "environment": "org.apache.samza.config.EnvironmentConfigRewriter",
        "regex-topics": "org.apache.samza.config.RegExTopicGenerator",
    },
}

_ALIASES = {"org.apache.samza.serializers.JsonSerdeV2Factory": "json"}
"""Further Java names of things that have one already; never written."""

_SHORT = {java: short for names in _TABLE.values() for short, java in names.items()} | _ALIASES

_OWN_ALLOWED = frozenset({Kind.SSP_GROUPER, Kind.TASK_NAME_GROUPER, Kind.SERDE})
"""Kinds of which a job may bring a class of its own."""


def is_user_class(name: str) -> bool:
    """Return whether ``name`` has the form ``module:Class`` (or ``module:function``)."""
    return _USER_CLASS.fullmatch(name) is not None


def user_class(name: str) -> str | None:
    """Return ``module:Class`` for ``name`` in that form or as ``module.Class``; else None.

    What Samza's packages hold is Java, and no class of the job.
    """
    if is_user_class(name):
        return name
    if _DOTTED_CLASS.fullmatch(name) and not name.startswith(_SAMZA):
        return ":".join(name.rsplit(".", 1))
    return None


def short_name(kind: Kind, name: str) -> str | None:
    """Return our name for ``name``, which may be Java's or ours; None where it is unknown."""
    short = _SHORT.get(name, name)
    return short if short in _TABLE[kind] else None


def any_short_name(name: str) -> str:
    """Return our name where ``name`` is a Java name of the table, else ``name``."""
    return _SHORT.get(name, name)


def java_name(kind: Kind, name: str) -> str | None:
    """Return Java's name for ``name``, which may be Java's or ours; None where it is unknown."""
    short = short_name(kind, name)
    return None if short is None else _TABLE[kind][short]


def known_names(kind: Kind) -> tuple[str, ...]:
    """Return our names of this kind, in the table's order, for messages."""
    return tuple(_TABLE[kind])


def all_names(kind: Kind) -> tuple[str, ...]:
    """Return our names and Java's of this kind."""
    return tuple(name for both in _TABLE[kind].items() for name in both)


def class_name(kind: Kind, key: str, value: str, *, java: bool = False) -> str:
    """Return the name of the class that ``value`` of ``key`` means: Java's if ``java``, else ours.

    A class of the job's own, where the kind allows one, is ``module:Class`` in either form.
    ConfigError: no class of this kind has that name.
    """
    name = java_name(kind, value) if java else short_name(kind, value)
    if name is None and kind in _OWN_ALLOWED:
        name = user_class(value)
    if name is None:
        known = ", ".join(known_names(kind))
        own = ", or module:Class of the job's own" if kind in _OWN_ALLOWED else ""
        raise ConfigError(key, value, f"no such {kind.value} is known", f"write {known}{own}")
    return name
