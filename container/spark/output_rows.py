"""Rows that leave as a pipeline has made them: the columns for key, value and headers.

Only functions that get a frame import pyspark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeport.config.config import Config
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.serde_names import ConfiguredSerde
from homeport.config.system_stream import SystemStream
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import ORDER_COLUMNS
from homeport.container.spark.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY, VALUE, HEADERS = "key", "value", "headers"
_PLACES = ("task", *ORDER_COLUMNS)
_STAY = frozenset({*_PLACES, "system", KEY, HEADERS})
"""Columns that are no part of the value."""
_AS_IT_IS = frozenset({"bytes", "string"})
_TEXTS = frozenset({"binary", "string"})


@dataclass(frozen=True)
class Leaving:
    """The output stream of rows, and its serdes; None: the stream has no such serde."""

    stream: SystemStream
    key_serde: ConfiguredSerde | None
    msg_serde: ConfiguredSerde | None

    @staticmethod
    def of(config: Config) -> Leaving | None:
        """Read it from ``config``; None: a task gets the rows."""
        pipeline = PipelineConfig.of(config)
        if pipeline is None or pipeline.output is None:
            return None
        view = SystemConfig.of(config, pipeline.output.system)
        name = pipeline.output.stream
        return Leaving(pipeline.output, view.key_serde(name), view.msg_serde(name))

    @property
    def is_json(self) -> bool:
        """Return whether the value is the row as JSON."""
        return self.msg_serde in {None, "json"}

    @property
    def has_plain_key(self) -> bool:
        """Return whether the key is the bytes of the column ``key``; else a serde makes it."""
        return self.key_serde is None or self.key_serde in _AS_IT_IS

    @property
    def is_one_column(self) -> bool:
        """Return whether the value is the column ``value``; else a serde gets {column: value}."""
        return self.msg_serde in _AS_IT_IS


def leaving_rows(frame: DataFrame, leaving: Leaving, named: Named) -> DataFrame:
    """Return ``frame`` with its order, ``value``, and ``key`` and ``headers`` if it has them.

    The value is bytes, or a struct for a serde that makes bytes of it. Spark writes the JSON.

    Raises:
        ConfigError: a column has a type that cannot leave.
    """
    types = {field.name: field.dataType for field in frame.schema.fields}
    columns = [_column(name) for name in _PLACES if name in types]
    if KEY in types:
        columns.append(_key(frame, leaving, named))
    if HEADERS in types:
        columns.append(_headers(frame, named))
    return frame.select(*columns, _value(frame, leaving, named).alias(VALUE))


def _key(frame: DataFrame, leaving: Leaving, named: Named) -> Column:
    if not leaving.has_plain_key:
        return _column(KEY)
    kind = frame.schema[KEY].dataType.simpleString()
    if kind not in _TEXTS:
        raise named.fault(
            f"the column 'key' is {kind}, and a key without a serde is binary or string",
            "cast it, or set samza.key.serde of the stream",
        )
    return _column(KEY).cast("binary").alias(KEY)


def _headers(frame: DataFrame, named: Named) -> Column:
    kind = frame.schema[HEADERS].dataType.simpleString()
    if kind not in {"map<string,binary>", "map<string,string>"}:
        raise named.fault(
            f"the column 'headers' is {kind}, and headers are map<string,binary>",
            "cast it, or give it another name",
        )
    return _column(HEADERS).cast("map<string,binary>").alias(HEADERS)


def _value(frame: DataFrame, leaving: Leaving, named: Named) -> Column:
    from pyspark.sql import functions as sql  # noqa: PLC0415 - only in containers with a pipeline

    rest = [name for name in frame.columns if name not in _STAY]
    if leaving.is_one_column:
        if rest != [VALUE] or frame.schema[VALUE].dataType.simpleString() not in _TEXTS:
            raise named.fault(
                f"by the serde {leaving.msg_serde} a row leaves as its column 'value' of binary or "
                f"string, its rows have {', '.join(rest) or 'no column'}",
                "select that one, or use the serde json",
            )
        return _column(VALUE).cast("binary")
    if not rest:
        raise named.fault(
            f"no column is left that could leave of {', '.join(frame.columns)}",
            "select one under another name",
        )
    row = sql.struct(*(_column(name) for name in rest))
    if leaving.is_json:
        return sql.to_json(row, {"ignoreNullFields": "false"}).cast("binary")
    return row


def _column(name: str) -> Column:
    from pyspark.sql import functions as sql  # noqa: PLC0415 - as in ``_value``

    return sql.col(quoted(name))
