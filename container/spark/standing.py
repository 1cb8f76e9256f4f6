"""Standing rows: frames of Spark's over what is the same for many batches, as adjunct stores are.

Such rows are sent to the JVM once for each of their changes. A plan that joins with them sends them
to all of Spark's tasks once, and again after a change (``java/Plans.java``, ``renew``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from homeport.container.adjunct.frames import StoreFrame, StoreFrames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return a frame with the rows of ``table``.

    Spark's functions over arrays and maps, such as ``transform``, fail at a null in one that they
    find as Arrow has it: such rows are made into Spark's own form first.
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
    """Frames for plans of one batch: made once for each change of a store.

    Each plan sends the rows to all tasks again.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._held: dict[str, tuple[int, DataFrame]] = {}

    def of(self, name: str, rows: StoreFrame) -> DataFrame:
        """Return the frame of the store."""
        number, frame = self._held.get(name, (None, None))
        if frame is None or number != rows.number:
            # For Spark its size is unknown: it would sort both sides of a join instead.
            frame = frame_of(self._session, rows.rows).hint("broadcast")
            self._held[name] = rows.number, frame
        return frame


@dataclass
class StandingSource:
    """Of one store in the JVM: its number there, its frame, and the number of its rows.

    ``given``: the schema. ``loaded``: None before there are rows.
    """

    number: int
    frame: DataFrame
    given: pa.Schema
    loaded: int | None = None


class StandingSources:
    """Those of all plans that last.

    Args:
        java: the ``Plans`` of the JVM.
        make: from a schema to a source without rows.
        load: the JVM has these rows of that source; it waits for that.
    """

    def __init__(
        self,
        java: Any,  # noqa: ANN401 - an object of Java
        make: Callable[[pa.Schema], StandingSource],
        load: Callable[[StandingSource, pa.Table], None],
    ) -> None:
        self._java = java
        self._make = make
        self._load = load
        self._sources: dict[str, StandingSource] = {}

    def untouch(self) -> None:
        """Begin to notice what asks for their rows."""
        for source in self._sources.values():
            self._java.untouch(source.number)

    def source(self, name: str, rows: StoreFrame) -> StandingSource:
        """Return the source of the store, with these rows."""
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = self._make(rows.rows.schema)
        if source.loaded != rows.number:
            self._load(source, rows.rows)
            source.loaded = rows.number
        return source

    def renew(self, plan: int, used: dict[str, int], rows: StoreFrames) -> None:
        """Give the plan ``rows`` of the stores that it uses: ``used`` {store: their number}."""
        if all(rows[name].number == number for name, number in used.items()):
            return
        for name in used:
            self.source(name, rows[name])
        self._java.renew(plan)
        used.update({name: rows[name].number for name in used})


def numbers_of(sources: Mapping[str, StandingSource]) -> dict[str, int]:
    """Return {store: the number of its rows}."""
    return {name: source.loaded or 0 for name, source in sources.items()}
