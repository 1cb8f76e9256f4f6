"""How the values of each stream become a column of the frames that a pipeline takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from homeport.config.settings.input_serdes import InputSerde, are_alike, serde_of_columns
from homeport.config.system_stream import SystemStream
from homeport.container.classes import load_columns
from homeport.container.serde.columns import Columns
from homeport.container.spark.inputs import Takes


def serdes_of_frames(
    inputs: Sequence[InputSerde], takes: Takes
) -> dict[SystemStream | None, InputSerde]:
    """{stream: the serde that makes columns of its values}; {None: it} where one does so for all.

    PURE.

    Raises:
        ConfigError: one frame has the rows of all inputs, whose values have different types.
    """
    if None in takes.values() or are_alike(inputs):
        found = serde_of_columns(inputs, has_pipeline=True)
        return {} if found is None else {None: found}
    return {item.input: item for item in inputs if item.has_schema}


def value_columns(
    inputs: Sequence[InputSerde], takes: Takes
) -> Mapping[SystemStream | None, Columns]:
    """{stream of a frame, None for all: how its values become a column}; of others they are bytes.

    Raises:
        ConfigError: as above, or a serde has no columns.
    """
    serdes = serdes_of_frames(inputs, takes)
    if None in serdes:
        return dict.fromkeys(takes.values(), load_columns(serdes[None]))
    return {stream: load_columns(item) for stream, item in serdes.items()}
