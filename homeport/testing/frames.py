"""Records of a test as frames: rows of pandas or Arrow go in, and outputs come as a DataFrame."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from homeport.testing.broker import Record, TestRunnerError

if TYPE_CHECKING:
    import pandas as pd

_VALUE = "value"
_PLACES = ("partition", "offset", "timestamp")
_PARTS = frozenset({"key", "timestamp", "partition"})
_MS_PER_S = 1000


def records_of(frame: object, key: str | None) -> Iterator[dict[str, Any]]:
    """Yield the arguments of ``TestRunner.send`` of each row, in order.

    ``key``: the column of the keys; None: ``key``, if there is such a column.

    Raises:
        TestRunnerError: it is no frame, or has no such column.
    """
    columns, rows = _rows(frame)
    if key is not None and key not in columns:
        raise TestRunnerError(
            f"the frame has no column {key!r}: it has {', '.join(columns) or 'none'}"
        )
    is_whole = _VALUE in columns
    parts = _PARTS if key in (None, "key") else _PARTS - {"key"}
    for row in rows:
        fields = {name: value for name, value in row.items() if name not in parts}
        yield {
            "key": row.get("key" if key is None else key),
            "value": row[_VALUE] if is_whole else fields,
            "partition": _whole(row.get("partition")),
            "timestamp": _ms(row.get("timestamp")),
        }


def _rows(frame: object) -> tuple[list[str], Iterator[Mapping[str, Any]]]:
    """Return the names of the columns, and the rows; null, NaN and NaT are None."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return frame.schema.names, iter(frame.to_pylist())
    import pandas as pd  # noqa: PLC0415 - a test without frames needs none

    if not isinstance(frame, pd.DataFrame):
        raise TestRunnerError(
            f"give a pandas DataFrame or an Arrow table, not {type(frame).__name__}"
        )
    rows = (
        {name: None if _is_missing(value) else value for name, value in row.items()}
        for row in frame.rename(columns=str).to_dict("records")
    )
    return [str(name) for name in frame.columns], rows


def _is_missing(value: object) -> bool:
    import pandas as pd  # noqa: PLC0415 - as above

    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


def _whole(number: Any) -> Any:  # noqa: ANN401 - of a column
    """Return whole numbers as int: a column that lacks one has them as floats."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _ms(time: Any) -> Any:  # noqa: ANN401 - of a column; ``send`` checks it
    """Return a time in ms since 1970; one without a zone is in UTC."""
    if not isinstance(time, datetime):
        return _whole(time)
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * _MS_PER_S)


def frame_of(records: Sequence[Record]) -> pd.DataFrame:
    """Return a row of each record: key, value, partition, offset, and timestamp in UTC.

    Values that are all dicts become a column of each field; one with the name of another column
    has ``value.`` before it.
    """
    import pandas as pd  # noqa: PLC0415 - as above

    values = [record.value for record in records]
    found: dict[str, Any] = {"key": [record.key for record in records]}
    if values and all(isinstance(value, dict) for value in values):
        for name in dict.fromkeys(str(name) for value in values for name in value):
            column = f"{_VALUE}.{name}" if name in {"key", *_PLACES} else name
            found[column] = [value.get(name) for value in values]
    else:
        found[_VALUE] = values
    for name in _PLACES:
        found[name] = [getattr(record, name) for record in records]
    frame = pd.DataFrame(found)
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], unit="ms", utc=True)
    return frame


def last_of(records: Sequence[Record]) -> str:
    """Return how many records there are, and the last one, in a line."""
    if not records:
        return "no records"
    last = f"{records[-1].key!r}: {reprlib.repr(records[-1].value)}"
    return f"1 record, {last}" if len(records) == 1 else f"{len(records)} records, the last {last}"
