"""Columns of frames from the values of streams and the entries of adjunct stores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.settings.adjunct_section import AdjunctsConfig
from homeport.config.settings.input_serdes import InputSerde, are_alike, serde_of_columns
from homeport.config.settings.serde_names import ConfiguredSerde, SchemaSerde
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.frames import KEY, VALUE, EntryColumns
from homeport.container.classes import load_columns, load_serde, with_classes
from homeport.container.serde.arrow_serdes import arrow_form
from homeport.container.serde.columns import REFUSALS, Columns
from homeport.container.spark.inputs import ALL, Takes
from homeport.container.spark.work import as_parameter


def serdes_of_frames(
    inputs: Sequence[InputSerde], takes: Takes
) -> dict[SystemStream | None, InputSerde]:
    """Return {stream: the serde that makes columns of its values}; {None: it} of all inputs.

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
    """Return {stream of a frame, None for all: the ``Columns`` of its values}; others are bytes.

    Raises:
        ConfigError: as ``serdes_of_frames``, or a serde has no columns.
    """
    serdes = serdes_of_frames(with_classes(inputs), takes)
    if None in serdes:
        return dict.fromkeys(takes.values(), load_columns(serdes[None]))
    return {stream: load_columns(item) for stream, item in serdes.items()}


@dataclass(frozen=True)
class StoreSerdes:
    """An adjunct store and its serdes. ``input_key``: the key that names its stream."""

    name: str
    input_key: str
    stream: SystemStream
    key: ConfiguredSerde
    msg: ConfiguredSerde


def store_serdes(config: Config) -> tuple[StoreSerdes, ...]:
    """Return the serdes of all adjunct stores of the job, by name."""
    stores = StorageConfig.of(config).stores
    return tuple(
        StoreSerdes(name, own.input_key, own.stream, stores[name].key_serde, stores[name].msg_serde)
        for name, own in AdjunctsConfig.of(config).stores.items()
    )


def refuse_twins(stores: Sequence[StoreSerdes], streams: Sequence[str]) -> None:
    """Require different table names for all stores and inputs; Spark ignores case.

    ``streams``: the names of the inputs as tables.

    Raises:
        ConfigError: two have one name.
    """
    taken = {as_parameter(name).lower(): f"the input {name}" for name in streams}
    taken[ALL] = f"{ALL!r}, the table with the rows of all inputs,"
    for store in stores:
        twin = taken.setdefault(as_parameter(store.name).lower(), f"the adjunct store {store.name}")
        if twin != f"the adjunct store {store.name}":
            rule = f"{twin} and the adjunct store {store.name} would be one table of the pipeline"
            remedy = "give the store another name"
            raise ConfigError(store.input_key, str(store.stream), rule, remedy)


def store_columns(stores: Sequence[StoreSerdes]) -> Mapping[str, EntryColumns | HomeportError]:
    """Return {store: how its entries become rows; or why they cannot be}."""
    found: dict[str, EntryColumns | HomeportError] = {}
    for store in stores:
        try:
            key_type, key = _made(keys.STORE_KEY_SERDE.named(store.name), store.key)
            value_type, value = _made(keys.STORE_MSG_SERDE.named(store.name), store.msg)
        except HomeportError as error:
            found[store.name] = error
        else:
            schema = pa.schema({KEY: key_type, VALUE: value_type})
            found[store.name] = EntryColumns(store.name, schema, key, value, REFUSALS)
    return found


def _made(
    key: str, serde: ConfiguredSerde
) -> tuple[pa.DataType, Callable[[Sequence[bytes]], pa.Array]]:
    """Return the type of a column, and what makes it of the bytes of its elements."""
    form = None if isinstance(serde, SchemaSerde) else arrow_form(serde)
    if form is not None:
        return form.type, form.from_bytes
    columns = load_serde(key, serde).columns
    try:
        if columns is None:
            raise ValueError("it has no schema, which would say the types")
        made = columns()
    except ValueError as error:
        raise ConfigError(
            key,
            str(serde),
            f"the pipeline takes the store as a frame, and this serde has no columns: {error}",
            "use bytes, string, integer, long, double or a serde with a schema, or join in a task",
        ) from None

    def decode(data: Sequence[bytes]) -> pa.Array:
        decoded = made.decode(pa.array(data, pa.binary()))
        for reason in decoded.bad.values():
            raise ValueError(reason)
        return decoded.column

    return made.type, decode
