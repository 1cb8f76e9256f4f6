"""Standing rows: frames over rows that stay the same for many batches, those of adjunct stores.

The JVM gets such rows once for each change. A plan that joins with them sends them to all of
Spark's tasks once, and again after a change (``java/Plans.java``, ``renew``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from homeport.container.adjunct.frames import StoreFrame, StoreFrames
from homeport.container.spark.parsed_json import ParsedColumn
from homeport.container.spark.reads import Reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return a frame with the rows of ``table``.

    Spark's functions over arrays and maps, such as ``transform``, fail at a null in an array of
    Arrow's: rows with arrays or maps are made into Spark's own form first.
    """
    frame = session.createDataFrame(table)
    if table.num_rows == 0 or not any(_has_elements(field.type) for field in table.schema):
        return frame
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - pyspark is there by now

    own: Any = frame._jdf  # noqa: SLF001 - pyspark has no such call
    spark: Any = session._jsparkSession  # noqa: SLF001 - as above
    rows = own.queryExecution().toRdd()
    return DataFrame(spark.internalCreateDataFrame(rows, own.schema(), False), session)  # noqa: FBT003 - Spark's


def _has_elements(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_elements(kind.field(index).type) for index in range(kind.num_fields))
    return bool(pa.types.is_nested(kind))


class FramesOfEachPlan:
    """Frames for plans that last one batch: each is made once for each change of a store.

    Each plan sends the rows to all tasks again.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._held: dict[str, tuple[int, DataFrame]] = {}

    def of(self, name: str, rows: StoreFrame) -> DataFrame:
        """Return the frame of the store."""
        number, frame = self._held.get(name, (None, None))
        if frame is None or number != rows.number:
            # Spark does not know its size, and would sort both sides of a join.
            frame = frame_of(self._session, rows.rows).hint("broadcast")
            self._held[name] = rows.number, frame
        return frame


@dataclass(frozen=True)
class Source:
    """A frame in the JVM, whose rows we send. ``number``: its number there. ``given``: its schema.

    ``form``, ``schema``: the schemas, Spark's and Arrow's, of the rows that are sent.
    ``reads``: the columns that are sent; None: all. ``parsed``: columns whose JSON is read before.
    """

    number: int
    frame: DataFrame
    given: pa.Schema
    form: Any
    schema: pa.Schema
    reads: Reads | None = None
    parsed: tuple[ParsedColumn, ...] = ()

    @property
    def needs(self) -> Reads | None:
        """Return the columns that a batch must have for ``reads``; None: all."""
        found = self.reads
        for column in self.parsed:
            found = None if found is None else column.needs(found)
        return found


class StandingSources:
    """The sources of adjunct stores, for all plans that last; ``java``: the ``Plans`` of the JVM.

    ``make``: makes a source without rows. ``load``: sends the JVM the rows of a source, and waits
    until it has them.
    """

    def __init__(
        self,
        java: Any,  # noqa: ANN401 - an object of Java
        make: Callable[[pa.Schema], Source],
        load: Callable[[Source, pa.Table], None],
    ) -> None:
        self._java = java
        self._make = make
        self._load = load
        self._sources: dict[str, Source] = {}
        self._loaded: dict[str, int] = {}

    def untouch(self) -> None:
        """Let the JVM note which sources are read from now on."""
        for source in self._sources.values():
            self._java.untouch(source.number)

    def source(self, name: str, rows: StoreFrame) -> Source:
        """Return the source of the store, with these rows."""
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = self._make(rows.rows.schema)
        if self._loaded.get(name) != rows.number:
            self._load(source, rows.rows)
            self._loaded[name] = rows.number
        return source

    def renew(self, plan: int, used: dict[str, int], rows: StoreFrames) -> None:
        """Give the plan ``rows`` of the stores that it uses: ``used`` {store: their number}."""
        if all(rows[name].number == number for name, number in used.items()):
            return
        for name in used:
            self.source(name, rows[name])
        self._java.renew(plan)
        used.update({name: rows[name].number for name in used})
