"""Which records of a table begin or end a version.

PURE.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.container.adjunct.versions import Marker, parse_marker


def markers_in(rows: pa.Table, known_by: VersionMarkers | None) -> dict[int, Marker | None]:
    """{index of a row: its marker; None: one that is not understood}, in the order of the rows.

    ``known_by``: None: the stream has none.
    """
    if known_by is None:
        return {}
    if known_by.header is not None:
        return dict(_by_header(rows["headers"], known_by.header))
    assert known_by.key is not None  # noqa: S101 - for the type checker: one of both is set
    is_marker = pc.fill_null(pc.equal(rows["key"], known_by.key.encode()), False)  # noqa: FBT003 - pyarrow takes it by position
    places = pc.indices_nonzero(is_marker)
    values = rows["value"].take(places).to_pylist()
    return dict(zip(places.to_pylist(), map(parse_marker, values), strict=True))


def _by_header(headers: pa.ChunkedArray, name: str) -> Iterator[tuple[int, Marker | None]]:
    places = pc.indices_nonzero(headers.is_valid())
    for place, pairs in zip(places.to_pylist(), headers.take(places).to_pylist(), strict=True):
        found = [value for key, value in pairs if key == name]
        if found:
            # Of headers with one name the last counts, as for a task.
            yield place, parse_marker(found[-1])
