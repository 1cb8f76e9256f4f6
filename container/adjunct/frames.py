"""The entries of an adjunct store as rows of a frame, for pipelines, and changes to them.

PURE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.errors import HomeportError

KEY, VALUE = "key", "value"
Pairs = Iterable[tuple[bytes, bytes]]
_ROWS = 65_536
"""How many entries become columns together."""
_CHUNKS = 8
"""More parts than that are copied into one, since each part costs time at each change."""


class FrameError(HomeportError):
    """A store cannot be a frame of the pipeline."""


@dataclass(frozen=True)
class StoreFrame:
    """The rows of a store. ``number``: greater after each change."""

    number: int
    rows: pa.Table


StoreFrames = Mapping[str, StoreFrame]
"""{store: its rows}."""
NO_FRAMES: StoreFrames = {}
"""The frames of a pipeline that takes no store."""


@dataclass(frozen=True)
class EntryColumns:
    """How the entries of the store ``name`` become columns.

    ``key``, ``value``: make a column of bytes; they raise one of ``refusals`` for bytes that they
    cannot read. ``schema``: the schema of the rows.
    """

    name: str
    schema: pa.Schema
    key: Callable[[Sequence[bytes]], pa.Array]
    value: Callable[[Sequence[bytes]], pa.Array]
    refusals: tuple[type[Exception], ...] = (ValueError,)

    def rows(self, entries: Sequence[tuple[bytes, bytes]]) -> pa.Table:
        """Return their rows, in their order.

        Raises:
            FrameError: the serde of the store cannot read a key or a value.
        """
        columns = []
        for part, made in enumerate((self.key, self.value)):
            try:
                columns.append(made([entry[part] for entry in entries]))
            except self.refusals as error:
                raise FrameError(self._story(entries, part, made, error)) from error
        return pa.table(columns, self.schema)

    def _story(
        self,
        entries: Sequence[tuple[bytes, bytes]],
        part: int,
        made: Callable[[Sequence[bytes]], pa.Array],
        error: Exception,
    ) -> str:
        which = ""
        for entry in entries:
            try:
                made([entry[part]])
            except self.refusals as own:
                which, error = f" of {entry[0][:80]!r}", own
                break
        return (
            f"adjunct store {self.name} cannot be a frame of the pipeline: the "
            f"{self.schema.names[part]}{which} is not what the store's serde reads ({error}): "
            "correct the record, or the serde"
        )


@dataclass(frozen=True)
class FrameRows:
    """The rows of one store, and the bytes of their keys, by which changes find them."""

    columns: EntryColumns
    keys: pa.ChunkedArray
    rows: pa.Table

    @staticmethod
    def of(columns: EntryColumns, pairs: Pairs, limit_bytes: int) -> FrameRows:
        """Return the rows of ``pairs``, whose keys are all different.

        Raises:
            FrameError: they take more than ``limit_bytes``, or cannot be read.
        """
        parts, keys, size = [columns.schema.empty_table()], [pa.array([], pa.binary())], 0
        for entries in _parted(pairs):
            parts.append(columns.rows(entries))
            keys.append(pa.array([key for key, _ in entries], pa.binary()))
            size += parts[-1].nbytes
            if size > limit_bytes:
                raise FrameError(too_large(columns.name, limit_bytes))
        return FrameRows(columns, pa.chunked_array(keys), pa.concat_tables(parts))

    def changed(self, entries: Mapping[bytes, bytes | None]) -> FrameRows:
        """Return the rows with the values in ``entries``, None: deleted; errors as of ``rows``."""
        is_kept = pc.invert(pc.is_in(self.keys, value_set=pa.array(entries, pa.binary())))
        new = [(key, value) for key, value in entries.items() if value is not None]
        rows = pa.concat_tables([self.rows.filter(is_kept), self.columns.rows(new)])
        added = pa.array([key for key, _ in new], pa.binary())
        kept = self.keys.filter(is_kept)
        keys = pa.chunked_array([*kept.chunks, added], pa.binary())
        if keys.num_chunks > _CHUNKS:
            keys, rows = pa.chunked_array([keys.combine_chunks()]), rows.combine_chunks()
        return FrameRows(self.columns, keys, rows)


def too_large(names: str, limit_bytes: int) -> str:
    """Return the last log line of a container whose frames of stores do not fit."""
    return (
        f"adstore.frames.max.bytes = {limit_bytes}: as frames of the pipeline adjunct store "
        f"{names} takes more: set it higher, with memory for it several times over, or join with "
        "get_arrow in a task, which needs none"
    )


def _parted(pairs: Pairs) -> Iterator[list[tuple[bytes, bytes]]]:
    remaining = iter(pairs)
    while part := list(islice(remaining, _ROWS)):
        yield part
