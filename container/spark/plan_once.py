"""Plans that Spark makes once, for a schema of its input, and runs on each next batch.

Spark takes a hundred times as long to plan a query as to run a small batch. So the pipeline's
function gets frames over "the batch that is at work", once, and Spark plans its result once. The
Java classes (``java/Plans.java``) hold those frames and plans; one connection takes batches in and
rows out. Where a plan would give a later batch other rows than a new plan
(``java/Soundness.java``), it is used for its first batch alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import socket
import struct
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from homeport.config.errors import HomeportError
from homeport.container.adjunct.frames import NO_FRAMES, StoreFrames
from homeport.container.native.column_reader import is_there
from homeport.container.spark import java_classes
from homeport.container.spark.faults import sparks_reason
from homeport.container.spark.parsed_json import ParsedColumn, parses, widened
from homeport.container.spark.reads import (
    Reads,
    leaves_of,
    merged,
    read_part,
    read_schema,
    reads_of,
)
from homeport.container.spark.standing import Source, StandingSources
from homeport.container.spark.work import LazyFrames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_LOG = logging.getLogger(__name__)

_LOAD, _RUN, _UNLOAD, _LOADED = 1, 2, 3, 4
_FAILED = -1
_SECRET_BYTES = 32
_ONE_PARTITION_ROWS = 5_000
"""One core runs a batch of up to so many rows sooner than the scheduler deals it to several."""
_SMALL_BYTES = 64 * 1024
_PLANS = 16
"""At most; each is for a schema that the input had. The oldest plan goes first."""
_numbers = count(1)
"""The numbers of sources and plans; a process has one JVM."""

Tables = Mapping[str, pa.Table]
Schemas = Mapping[str, pa.Schema]
Function = Callable[[Mapping[str, "DataFrame"]], "DataFrame"]
_Key = tuple[tuple[tuple[str, pa.Schema], ...], int]


@dataclass(frozen=True)
class _Plan:
    """``output``: the schema of its rows. ``stores``: {adjunct store: the number of its rows}."""

    number: int
    sources: Mapping[str, Source]
    output: pa.Schema
    stores: dict[str, int]


class PlanOnce:
    """Runs a pipeline's function over batches, planned once where that is sound. For one thread.

    Inputs are named; a pipeline with one input has one name.
    """

    _one_answer = threading.Lock()  # a process has one JVM: an order and its answer stay together

    def __init__(self, session: SparkSession, *, natively: bool = True) -> None:
        """The JVM has our classes, see ``connect``. ``natively``: whether JSON may come parsed."""
        jvm: Any = session._jvm  # noqa: SLF001 - pyspark's only way to the JVM
        self._session = session
        self._java: Any = jvm.homeport.spark.Plans(session._jsparkSession)  # noqa: SLF001 - as above
        secret = secrets.token_bytes(_SECRET_BYTES)
        port = self._java.serve(secret)
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(secret)
        self._answers = self._socket.makefile("rb")
        weakref.finalize(self, _close, self._answers, self._socket)
        self._cores = session.sparkContext.defaultParallelism
        self._natively = natively and is_there()
        self._plans: dict[_Key, _Plan | None] = {}
        self._standing = StandingSources(self._java, self._source, self._load_standing)

    @staticmethod
    def connect(session: SparkSession, *, natively: bool = True) -> PlanOnce | None:
        """Connect to the JVM; None where there are no classes for it, as the log has it.

        ``natively``: whether JSON may be read natively before Spark, see ``parsed_json``.
        """
        try:
            java_classes.load(session)
        except (HomeportError, OSError) as error:
            _LOG.warning("Spark plans each batch: it has no Java classes of ours: %s", error)
            return None
        return PlanOnce(session, natively=natively)

    @property
    def has_plans(self) -> bool:
        """Return whether any plan so far lasts."""
        return any(plan is not None for plan in self._plans.values())

    def reads(self, schemas: Schemas, rows: int) -> dict[str, Reads] | None:
        """Return what the plans read that may run over tables with at most so many rows together.

        None: one of the plans does not exist, so that a batch must have all columns.
        """
        plans = [self._plans.get(_key(schemas, parts)) for parts in {1, self._partitions(rows)}]
        if None in plans:
            return None
        found = [{n: s.needs for n, s in plan.sources.items()} for plan in plans if plan]
        if any(reads is None for of_plan in found for reads in of_plan.values()):
            return None
        return {n: reduce(merged, (of_plan[n] or {} for of_plan in found)) for n in schemas}

    def _partitions(self, rows: int) -> int:
        return self._cores if rows > _ONE_PARTITION_ROWS else 1

    def run(
        self,
        tables: Tables,
        function: Function,
        schemas: Schemas | None = None,
        stores: StoreFrames = NO_FRAMES,
    ) -> pa.Table | None:
        """Return the rows that ``function`` makes of ``tables``; None: each batch needs a plan.

        ``function`` is called once for each schema, and once more for large batches where Spark has
        several cores. ``schemas``: of the frames, where the tables may lack columns that no plan
        reads (``reads``). ``stores``: the rows of adjunct stores, which the function may ask for. A
        plan stays, and gets them again where they have changed.
        """
        schemas = schemas or {name: table.schema for name, table in tables.items()}
        partitions = self._partitions(sum(table.num_rows for table in tables.values()))
        key = _key(schemas, partitions)
        if key not in self._plans:
            return self._first(key, tables, function, stores)
        plan = self._plans[key]
        if plan is None:
            return None
        try:
            self._standing.renew(plan.number, plan.stores, stores)
            return self._run(plan, tables, partitions)
        except ConnectionError:
            raise  # with all plans
        except Exception:  # whatever it is: what a failed run leaves in its plan is not known
            self._forget(key)
            raise

    def _first(
        self, key: _Key, tables: Tables, function: Function, stores: StoreFrames
    ) -> pa.Table:
        partitions, number = key[1], next(_numbers)
        sources = {n: self._source(t.schema, partitions) for n, t in tables.items()}
        standing: dict[str, Source] = {}
        self._standing.untouch()

        def of_store(name: str) -> DataFrame:
            standing[name] = self._standing.source(name, stores[name])
            return standing[name].frame

        try:
            # A function that reads rows itself, as with count(), finds this batch.
            loads = self._loads(sources, tables, partitions)
            self._answer([*loads, struct.pack(">iq", _LOADED, 0)])
            frames = {name: source.frame for name, source in sources.items()}
            frame = function(LazyFrames(frames, {n: partial(of_store, n) for n in stores}))
            reason = self._keep(number, frame, [*sources.values(), *standing.values()])
            if reason is None:
                frame, parsed = self._parsed(number, frame, sources)
                narrow = self._narrowed(frame, parsed, standing)
                output = _arrow_schema(frame.schema, self._session)
                used = {name: stores[name].number for name in standing}
                plan = _Plan(number, narrow, output, used)
                table = self._run(plan, tables, partitions)
            else:
                large = f" of more than {_ONE_PARTITION_ROWS} rows" if partitions > 1 else ""
                _LOG.warning("Spark plans each batch%s: %s", large, reason)
                table = frame.toArrow()
        except ConnectionError:
            raise  # with all plans
        except BaseException:  # whatever it is: nothing of it may stay in the JVM
            self._drop(number, sources)
            raise
        if reason is None:
            self._plans[key] = plan
            _LOG.info("of each batch Spark gets %s", _shown(plan.sources))
        else:
            self._plans[key] = None
            self._drop(number, sources)
        while len(self._plans) > _PLANS:
            self._forget(next(iter(self._plans)))
        return table

    def _keep(self, number: int, frame: DataFrame, sources: Sequence[Source]) -> str | None:
        gateway: Any = self._session.sparkContext._gateway  # noqa: SLF001 - pyspark's only way to it
        numbers = gateway.new_array(gateway.jvm.long, len(sources))
        for index, source in enumerate(sources):
            numbers[index] = source.number
        reason: str | None = self._java.keep(number, frame._jdf, numbers)  # noqa: SLF001 - as above
        return reason

    def _parsed(
        self, number: int, frame: DataFrame, sources: Mapping[str, Source]
    ) -> tuple[DataFrame, Mapping[str, Source]]:
        """Return a frame that finds its JSON read before Spark, where it can be, and its sources.

        Its rows are those of ``frame``, and the kept plan is its own.
        """
        if not self._natively:
            return frame, sources
        from py4j.protocol import Py4JError  # noqa: PLC0415 - pyspark is there by now
        from pyspark.errors import PySparkException  # noqa: PLC0415 - as above
        from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - as above

        corrupt = self._session.conf.get("spark.sql.columnNameOfCorruptRecord") or ""
        try:
            found = parses(self._java.parses(frame._jdf), corrupt)  # noqa: SLF001 - as below
            lines = "\n".join(parse.line for parse in found)
            own = self._java.parsed(number, frame._jdf, lines) if found else None  # noqa: SLF001 - as below
        except (Py4JError, PySparkException) as error:
            _LOG.warning(
                "Spark itself parses JSON: its plan cannot change: %s", sparks_reason(error)
            )
            return frame, sources
        if own is None:
            return frame, sources
        changed = {}
        for name, source in sources.items():
            columns = tuple(
                ParsedColumn(parse.column, source.given.field(parse.column).type, parse.kind)
                for parse in found
                if parse.source == source.number
            )
            given = widened(source.given, columns)
            form, schema = self._form(given)
            changed[name] = replace(source, given=given, form=form, schema=schema, parsed=columns)
        return DataFrame(own, self._session), changed

    def _narrowed(
        self, frame: DataFrame, sources: Mapping[str, Source], standing: Mapping[str, Source]
    ) -> Mapping[str, Source]:
        """Return the sources, which from now on are sent only what the plan of ``frame`` reads.

        Standing rows are sent whole: once, and other plans may read other columns.
        """
        every = [*sources.values(), *standing.values()]
        try:
            plan = json.loads(self._java.optimized(frame._jdf))  # noqa: SLF001 - as below
            leaves = leaves_of(self._java.leaves(frame._jdf))  # noqa: SLF001 - as below
            reads = reads_of(plan, leaves, {s.number: s.given for s in every})
        except (LookupError, TypeError, ValueError) as error:
            _LOG.warning("Spark gets all columns of each batch: its plan cannot be read: %s", error)
            return sources
        found: dict[str, Source] = {}
        for name, source in sources.items():
            read = reads[source.number]
            form, schema = self._form(read_schema(source.given, read))
            if read_schema(source.given, read) != source.given:
                self._java.narrow(source.number, form.json())
            found[name] = replace(source, reads=read, form=form, schema=schema)
        return found

    def _forget(self, key: _Key) -> None:
        plan = self._plans.pop(key)
        if plan is not None:
            self._drop(plan.number, plan.sources)

    def _drop(self, number: int, sources: Mapping[str, Source]) -> None:
        self._java.drop(number)
        for source in sources.values():
            self._java.forget(source.number)

    def _source(self, schema: pa.Schema, partitions: int | None = None) -> Source:
        """Return a source without rows, as pyspark's ``createDataFrame`` makes it of a table.

        ``partitions``: of each batch; None: its rows stand.
        """
        from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - pyspark is there by now

        form, read = self._form(schema)
        number, text = next(_numbers), form.json()
        if partitions is None:
            own = self._java.standing(number, text)
        else:
            own = self._java.frame(number, partitions, text)
        return Source(number, DataFrame(own, self._session), schema, form, read)

    def _load_standing(self, source: Source, rows: pa.Table) -> None:
        loads = self._loads({"": source}, {"": rows.combine_chunks()}, 1)
        self._answer([*loads, struct.pack(">iq", _LOADED, 0)])

    def _form(self, schema: pa.Schema) -> tuple[Any, pa.Schema]:
        from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - as above
        from pyspark.sql.types import StructType  # noqa: PLC0415 - as above

        without_zone = self._session.conf.get("spark.sql.timestampType") == "TIMESTAMP_NTZ"
        form = StructType()
        for field in schema:
            form.add(field.name, from_arrow_type(field.type, without_zone), field.nullable)
        return form, _arrow_schema(form, self._session)

    def _converted(self, source: Source, table: pa.Table) -> pa.Table:
        for column in source.parsed:
            table = column.added(table, source.reads)
        if source.reads is not None:
            table = read_part(table, source.reads)
        if table.schema.equals(source.schema):
            return table
        from pyspark.sql.pandas.types import _check_arrow_table_timestamps_localize  # noqa: PLC0415 - as above

        zone = self._session.conf.get("spark.sql.session.timeZone")
        local = _check_arrow_table_timestamps_localize(table, source.form, True, zone)  # noqa: FBT003 - pyspark's
        return local.cast(source.schema)

    def _loads(
        self, sources: Mapping[str, Source], tables: Tables, partitions: int
    ) -> list[bytes | memoryview]:
        parts: list[bytes | memoryview] = []
        for name, source in sources.items():
            table = self._converted(source, tables[name])
            size = max(1, -(-table.num_rows // partitions))
            parts.append(struct.pack(">iqi", _LOAD, source.number, partitions))
            for index in range(partitions):
                batches = table.slice(index * size, size).to_batches()
                parts.append(struct.pack(">i", len(batches)))
                for batch in batches:
                    message = memoryview(batch.serialize())
                    parts += [struct.pack(">i", len(message)), message]
        return parts

    def _run(self, plan: _Plan, tables: Tables, partitions: int) -> pa.Table:
        orders = self._loads(plan.sources, tables, partitions)
        orders.append(struct.pack(">iq", _RUN, plan.number))
        orders += [struct.pack(">iq", _UNLOAD, s.number) for s in plan.sources.values()]
        batches = [pa.ipc.read_record_batch(p, plan.output) for p in self._answer(orders)]
        return pa.Table.from_batches(batches, plan.output)

    def _answer(self, orders: list[bytes | memoryview]) -> list[pa.Buffer]:
        """Return the JVM's answer to the last of ``orders``, the only one that has an answer.

        If the answer is not read to its end, the connection is closed: no later batch may get the
        rest of it.
        """
        with self._one_answer:
            try:
                self._send(orders)
                count = self._int()
                parts = [self._read(self._int()) for _ in range(count)]
            except BaseException:  # whatever it is: the answer is read in part
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
                raise
        if count == _FAILED:
            self._java.rethrow()
        return parts

    def _send(self, parts: list[bytes | memoryview]) -> None:
        try:
            if sum(map(len, parts)) <= _SMALL_BYTES:
                self._socket.sendall(b"".join(parts))
            else:
                for part in parts:
                    self._socket.sendall(part)
        except OSError as error:
            raise _gone() from error

    def _int(self) -> int:
        return int.from_bytes(self._read(4), "big", signed=True)

    def _read(self, size: int) -> pa.Buffer:
        buffer = pa.allocate_buffer(size)
        view = memoryview(buffer).cast("B")
        done = 0
        while done < size:
            try:
                got = self._answers.readinto(view[done:])
            except OSError as error:
                raise _gone() from error
            if not got:
                raise _gone()
            done += got
        return buffer


def _key(schemas: Schemas, partitions: int) -> _Key:
    return tuple(schemas.items()), partitions


def _shown(sources: Mapping[str, Source]) -> str:
    found = []
    for name, source in sources.items():
        reads = source.reads
        columns = source.given.names if reads is None else reads
        parts = [
            f"{column}.{own}"
            for column in columns
            for own in sorted((reads or {}).get(column) or {""})
        ]
        found.append(f"{name}: {', '.join(part.removesuffix('.') for part in parts)}")
    return "; ".join(found)


def _arrow_schema(form: StructType, session: SparkSession) -> pa.Schema:
    """Return the schema in which Spark has rows of ``form`` for pyspark's ``toArrow``."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - pyspark is there by now

    large = session.conf.get("spark.sql.execution.arrow.useLargeVarTypes") == "true"
    return to_arrow_schema(
        form,
        error_on_duplicated_field_names_in_struct=True,
        timezone="UTC",
        prefers_large_types=large,
    )


def _gone() -> ConnectionError:
    return ConnectionError("Spark's JVM ended while it had a batch; its lines are above")


def _close(*opened: Any) -> None:  # noqa: ANN401 - a socket and its reader
    for one in opened:
        with contextlib.suppress(OSError):
            one.close()
