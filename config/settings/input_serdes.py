"""The serdes of the inputs' values, and the one that makes columns of them.

PURE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.adjunct_section import streams_of_tasks
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.serde_names import AVRO, SchemaSerde


@dataclass(frozen=True)
class InputSerde:
    """``serde``: of the values of ``stream``, as ``serde_name`` gives it; empty: there is none.

    ``key``: that of the configuration for it.
    """

    key: str
    stream: str
    serde: str = field(repr=False)

    @property
    def has_schema(self) -> bool:
        """Whether it can make columns."""
        return SchemaSerde.unpacked(self.serde) is not None


def input_serdes(config: Config) -> tuple[InputSerde, ...]:
    """Those of all inputs of tasks, broadcast ones too, in the order of the configuration."""
    found = []
    for item in streams_of_tasks(config):
        serde = SystemConfig.of(config, item.system).msg_serde(item.stream) or ""
        key = keys.STREAM_MSG_SERDE.named(item.system, item.stream)
        found.append(InputSerde(key, item.stream, serde))
    return tuple(dict.fromkeys(found))


def serde_of_columns(inputs: Sequence[InputSerde]) -> InputSerde | None:
    """The serde that makes columns for a pipeline or a BatchTask; None where values stay bytes.

    Raises:
        ConfigError: inputs have different ones, and a batch has one column of values.
    """
    first = next((item for item in inputs if item.has_schema), None)
    if first is None:
        return None
    entry = SchemaSerde.unpacked(first.serde)
    assert entry is not None  # noqa: S101 - for the type checker: it has a schema
    for other in inputs:
        if other.serde != first.serde:
            theirs = SchemaSerde.unpacked(other.serde)
            raise ConfigError(
                other.key,
                (theirs.name if theirs else other.serde) or None,
                "a pipeline or BatchTask gets the values of all inputs in one column, and those "
                f"of {first.stream} have the serde {entry.name!r}",
                "give all inputs the same serde, or none a schema",
            )
    streams = {item.stream for item in inputs}
    if entry.kind == AVRO and not (entry.schema or entry.file) and len(streams) > 1:
        raise ConfigError(
            keys.SERIALIZERS_REGISTRY_SCHEMA.named(entry.name),
            None,
            f"the values of {', '.join(sorted(streams))} are one column, and the registry has a "
            "schema for each",
            "write the schema by which all are to be read",
        )
    return first
