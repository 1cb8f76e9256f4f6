"""Entries of records: by default the record's own key and value, else what the job's code takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from homeport.config.errors import WireError
from homeport.container.adjunct.extractor import (
    ByExtractor,
    ExtractorFailedError,
    KeyAndValue,
    Serdes,
    encoded,
)
from homeport.container.api import IncomingMessage, KeyValueExtractor
from homeport.container.serde.avro_serde import avro_serde
from homeport.container.serde.serdes import Serde, SerdeFailedError, serde
from tests.unit.container.adjunct.tables import message, table

_STRING, _LONG, _JSON = serde("string"), serde("long"), serde("json")


def _own() -> Serde:
    """A serde of the job's own, made again at each place that names its class."""
    return Serde("my_job:Model", bytes, lambda data: data[1:], is_own=True)


@pytest.mark.parametrize(
    ("stream", "kept"),
    [
        (Serdes(None, None), Serdes(_STRING, _JSON)),
        (Serdes(_STRING, _JSON), Serdes(_STRING, _JSON)),
        (Serdes(_STRING, _JSON), Serdes(None, None)),
        (Serdes(_STRING, _own()), Serdes(_STRING, _own())),
    ],
)
def test_bytes_are_passed_on_where_nothing_changes_them(stream: Serdes, kept: Serdes) -> None:
    """The stream has no serde, or the store's; a null stays one. Nothing is looked into."""
    keys, values = _default(stream, kept).of(table([(b"a", b"{"), (b"b", None)]))
    assert (keys, values) == ([b"a", b"b"], [b"{", None])


def _default(stream: Serdes, kept: Serdes) -> KeyAndValue:
    """Return the default extraction; it ends a test where a record is refused."""

    def refuse(_row: Mapping[str, Any], reason: str) -> None:
        raise WireError(reason)

    return KeyAndValue("planes", stream, kept, refuse)


_OTHER = Serde("my_job:Other", lambda data: b"." + data, bytes, is_own=True)
_INT, _OR_NULL = (avro_serde("key", schema) for schema in ('"long"', '["null", "long"]'))


@pytest.mark.parametrize(
    ("stream", "kept", "data", "expected"),
    [
        (_JSON, _LONG, b"1", bytes(7) + b"\1"),
        (_own(), _OTHER, b"-x", b".x"),
        (_INT, _OR_NULL, _INT.to_bytes(7), _OR_NULL.to_bytes(7)),
    ],
    ids=["built in", "of the job's own", "of one kind with other schemas"],
)
def test_other_serdes_of_the_store_are_kept_to(
    stream: Serde, kept: Serde, data: bytes, expected: bytes
) -> None:
    """What the stream's read is what the store's write."""
    own = _default(Serdes(_STRING, stream), Serdes(_STRING, kept))
    assert own.of(table([(b"a", data), (b"b", None)])) == ([b"a", b"b"], [expected, None])


def test_what_a_serde_cannot_carry_is_one_line() -> None:
    """Which store it is for is in it; what cannot be read is the record's own fault."""
    own = _default(Serdes(_STRING, _JSON), Serdes(_STRING, _LONG))
    with pytest.raises(ExtractorFailedError, match=r"^store planes: its key and value: TypeError"):
        own.of(table([(b"a", b'"x"')]))
    with pytest.raises(ExtractorFailedError, match=r"'long' carries int, not str"):
        encoded("planes", Serdes(_STRING, _LONG), "a", "x")
    with pytest.raises(WireError, match="not JSON"):
        own.of(table([(b"a", b"{")]))
    bare = Serdes(None, None)
    assert encoded("planes", bare, b"a", None) == (b"a", None)
    with pytest.raises(ExtractorFailedError, match="without a serde it must be bytes, not int"):
        encoded("planes", bare, b"a", 1)


class _Model(KeyValueExtractor):
    """Projects a plane to its model; records without one are passed over."""

    def get_key(self, message: IncomingMessage) -> str | None:
        return None if message.value == "none" else f"plane {message.key}"

    def get_value(self, message: IncomingMessage) -> str | None:
        return None if message.value == "gone" else message.value.upper()


class _InBulk(_Model):
    def get_arrow(self, table: pa.Table) -> tuple[pa.Array, pa.Array]:
        return table["key"].cast(pa.string()), pc.binary_length(table["value"]).cast(pa.int64())


class _Short(_Model):
    def get_arrow(self, table: pa.Table) -> tuple[pa.Array, pa.Array]:
        return table["key"], table["value"][1:]


class _Broken(_Model):
    def get_key(self, message: IncomingMessage) -> str | None:
        raise ValueError(message.value)

    def get_arrow(self, table: pa.Table) -> None:
        if table.num_rows > 1:
            raise ValueError("no table")


def _messages(rows: pa.Table) -> Iterator[IncomingMessage]:
    """All but those that are empty, which stand for what cannot be read."""
    for row in rows.to_pylist():
        if row["value"]:
            found = message(row["key"].decode(), row["value"].decode())
            yield found._replace(offset=row["offset"])


def _by(extractor: KeyValueExtractor, kept: Serdes) -> ByExtractor:
    return ByExtractor("planes", extractor, kept, _messages)


_TEXT = Serdes(_STRING, _STRING)


class _OfCoroutines(_Model):
    async def get_key(self, message: IncomingMessage) -> str:  # type: ignore[override]  # as said below
        raise AssertionError(message)


class _OfGenerators(_Model):
    def get_arrow(self, table: pa.Table) -> Iterator[pa.Table]:  # type: ignore[override]  # as said below
        yield table


class _OfMore(_Model):
    def get_value(self, message: IncomingMessage, more: int) -> str:  # type: ignore[override]  # as said below
        raise AssertionError(message, more)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (_OfCoroutines(), "get_key of a _OfCoroutines is a coroutine, which nothing would await"),
        (_OfGenerators(), "get_arrow of a _OfGenerators is a generator"),
        (_OfMore(), r"get_value of a _OfMore is not to be called with \(message\)"),
        (None, "get_key of None is None, which cannot be called"),
        (_Model, r"get_key of a ABCMeta is not to be called with \(message\)"),
    ],
)
def test_an_extractor_that_would_never_run_is_refused_before_a_record(
    made: Any,  # noqa: ANN401 - an extractor of no kind
    expected: str,
) -> None:
    """As the methods of a task are."""
    with pytest.raises(ExtractorFailedError, match=f"store planes: {expected}"):
        _by(made, _TEXT)


def test_an_extractor_is_asked_for_each_record() -> None:
    """A key that is None is passed over, a value that is None deletes; the order stays."""
    rows = table([(b"a", b"x"), (b"b", b"none"), (b"c", b""), (b"d", b"gone")])
    assert _by(_Model(), _TEXT).of(rows) == (
        [b"plane a", None, None, b"plane d"],
        [b"X", None, None, None],
    )


def test_an_extractor_may_take_tables() -> None:
    """No object is made per record."""
    rows = table([(b"a", b"xyz"), (b"b", None)])
    keys, values = _by(_InBulk(), Serdes(_STRING, _LONG)).of(rows)
    assert (keys, values) == ([b"a", b"b"], [bytes(7) + b"\3", None])


def test_columns_that_do_not_fit_are_one_line() -> None:
    """Of another length, of another type, of a serde without type."""
    rows = table([(b"a", b"xyz"), (b"b", b"")])
    with pytest.raises(ExtractorFailedError, match="_Short returned 2 keys and 1 values of 2 rec"):
        _by(_Short(), Serdes(None, None)).of(rows)
    with pytest.raises(ExtractorFailedError, match="'string' carries string, not int64"):
        _by(_InBulk(), _TEXT).of(rows)
    with pytest.raises(ExtractorFailedError, match="'json' has no Arrow type: leave get_arrow out"):
        _by(_InBulk(), Serdes(_STRING, _JSON)).of(rows)


def test_what_the_jobs_code_raises_is_one_line() -> None:
    """In both of its forms."""
    with pytest.raises(ExtractorFailedError, match=r"^store planes: .*: ValueError: no table$"):
        _by(_Broken(), _TEXT).of(table([(b"a", b"x"), (b"b", b"y")]))
    with pytest.raises(ExtractorFailedError, match=r"^store planes: .*: ValueError: x$"):
        _by(_Broken(), _TEXT).of(table([(b"a", b"x")]))


def test_records_that_cannot_be_kept_are_handed_over_one_by_one() -> None:
    """Without a key, with a reserved one, or not of the serde; all others are kept."""
    refused: list[tuple[int, str]] = []
    own = KeyAndValue(
        "planes",
        Serdes(_STRING, _JSON),
        Serdes(_STRING, _LONG),
        lambda row, reason: refused.append((row["offset"], reason)),
    )
    rows = table(
        [(b"a", b"1"), (None, b"2"), (b"b", b"{"), (b"\x00homeport.x", b"3"), (b"c", None)], first=7
    )
    assert own.of(rows) == (
        [b"a", None, None, None, b"c"],
        [bytes(7) + b"\1", None, None, None, None],
    )
    assert refused == [
        (8, "it has no key, under which store planes would keep it"),
        (9, "store planes cannot keep it: not JSON: b'{'"),
        (10, "store planes cannot keep it: its key is a reserved one"),
    ]
    with pytest.raises(ExtractorFailedError, match=r"'long' carries int, not str"):
        own.of(table([(None, b"1"), (b"a", b'"x"')]))
    assert own.of(table([(b"a", b"1")])) == ([b"a"], [bytes(7) + b"\1"])
    refused.clear()
    assert own.of(table([(b"a", b"{"), (b"b", b"1")])) == ([None, b"b"], [None, bytes(7) + b"\1"])
    assert [offset for offset, _ in refused] == [0]
    assert own.of(table([(b"\x00homeport.x", b"3")])) == ([None], [None])
    assert refused[1:] == [(0, "store planes cannot keep it: its key is a reserved one")]
    assert own.of(table([(None, b"3")])) == ([None], [None])
    assert refused[2:] == [(0, "it has no key, under which store planes would keep it")]


def test_no_extractor_may_make_a_reserved_key() -> None:
    """It would be taken for the store's own position."""
    with pytest.raises(ExtractorFailedError, match="store planes: its extractor made a reserved"):
        _by(_InBulk(), Serdes(_STRING, _LONG)).of(table([(b"\x00homeport.a", b"b")]))


@pytest.mark.parametrize("fails_at", [1, 2])
def test_no_record_is_refused_for_a_serde_that_failed(fails_at: int) -> None:
    """At the whole column, and where records are looked at one by one."""
    calls: list[bytes] = []

    def away(data: bytes) -> str:
        calls.append(data)
        if len(calls) == fails_at:
            raise SerdeFailedError("the Schema Registry is away")
        raise WireError("not of it")

    refused: list[str] = []
    own = KeyAndValue(
        "planes",
        Serdes(_STRING, Serde("avro", _STRING.to_bytes, away)),
        Serdes(_STRING, _JSON),
        lambda _row, reason: refused.append(reason),
    )
    with pytest.raises(SerdeFailedError):
        own.of(table([(b"a", b"1")]))
    assert refused == []
