"""The serdes of the inputs' values, and those that make columns of them.

PURE.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.adjunct_section import streams_of_tasks
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.serde_names import ConfiguredSerde, SchemaSerde
from homeport.config.system_stream import SystemStream


@dataclass(frozen=True)
class InputSerde:
    """The serde of an input's values; empty: there is none. ``key``: its configuration key.

    ``is_class``: whether the serde is a class whose fields have types, which shows once it is
    loaded.
    """

    key: str
    system: str
    stream: str
    serde: ConfiguredSerde
    is_class: bool = False

    @property
    def input(self) -> SystemStream:
        """Return the stream with its system."""
        return SystemStream(self.system, self.stream)

    @property
    def has_schema(self) -> bool:
        """Return whether it can make columns."""
        return self.is_class or isinstance(self.serde, SchemaSerde)


def input_serdes(config: Config) -> tuple[InputSerde, ...]:
    """Return those of all inputs of tasks, broadcast ones too, as the configuration orders them."""
    found = []
    for item in streams_of_tasks(config):
        system = SystemConfig.of(config, item.system)
        serde = system.msg_serde(item.stream) or ""
        key = system.msg_serde_key(item.stream)
        found.append(InputSerde(key, item.system, item.stream, serde))
    return tuple(dict.fromkeys(found))


def are_alike(inputs: Sequence[InputSerde]) -> bool:
    """Return whether one serde reads the values of all of them, by one schema."""
    if len({item.serde for item in inputs}) > 1:
        return False
    return len({item.stream for item in inputs}) < 2 or not _is_per_stream(inputs[0].serde)  # noqa: PLR2004 - one


def _is_per_stream(serde: ConfiguredSerde) -> bool:
    return isinstance(serde, SchemaSerde) and serde.is_per_stream


def serde_of_columns(
    inputs: Sequence[InputSerde], *, has_pipeline: bool = False
) -> InputSerde | None:
    """Return the serde that makes one column of all inputs' values; None where they stay bytes.

    ``has_pipeline``: whether a pipeline takes one frame with the rows of all inputs; else a
    BatchTask takes them. ConfigError: the inputs have different serdes.
    """
    first = next((item for item in inputs if item.has_schema), None)
    if first is None:
        return None
    taker = "a BatchTask gets"
    more = ""
    if has_pipeline:
        taker = "this pipeline takes"
        more = ", or let the pipeline take a frame of each stream"
    for other in inputs:
        if other.serde != first.serde:
            raise ConfigError(
                other.key,
                str(other.serde) or None,
                f"{taker} the values of all inputs in one column, and those of {first.stream} have "
                f"the serde {str(first.serde)!r}",
                f"give all inputs the same serde, or none a schema{more}",
            )
    streams = sorted({item.stream for item in inputs})
    if isinstance(first.serde, SchemaSerde) and first.serde.is_per_stream and len(streams) > 1:
        raise keys.SERIALIZERS_REGISTRY_SCHEMA.error(
            None,
            f"the values of {', '.join(streams)} are one column, and the registry has a schema for "
            "each",
            f"write the schema by which all are to be read{more}",
            first.serde.name,
        )
    return first
