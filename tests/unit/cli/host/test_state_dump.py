"""The lines of ``homeport state dump``, and the keys that a query names."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from homeport.cli.host.state_dump import Query, lines
from homeport.config.errors import ConfigError
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.rocksdb.rocksdb_view import RocksDbView
from homeport.container.serde.serdes import serde


def _view(path: Path, *pairs: tuple[bytes, bytes]) -> RocksDbView:
    store = RocksDbStore(path, RocksDbMemory(8 << 20, 1))
    store.write(dict(pairs), 1)
    store.flush()
    store.close()
    return RocksDbView(path)


PAIRS = ((b"a", b"text"), (b"ab", b"\x00\xff"), (b"b\n", b"two\nlines"))


def test_bytes_are_text_where_they_are_and_digits_else(tmp_path: Path) -> None:
    """No control character and no broken text reaches a terminal."""
    with closing(_view(tmp_path, *PAIRS)) as view:
        said = list(lines(view, (serde("string"), serde("bytes")), Query(), None, as_json=False))
    assert said == ["a = text", "ab = 0x00ff", '"b\\n" = 0x74776f0a6c696e6573']


def test_json_keeps_every_byte(tmp_path: Path) -> None:
    """Bytes are base64; what the serde cannot read stands beside them."""
    with closing(_view(tmp_path, *PAIRS)) as view:
        said = list(lines(view, (serde("bytes"), serde("json")), Query(), 2, as_json=True))
    assert [json.loads(line) for line in said] == [
        {
            "key": {"bytes": "YQ=="},
            "value": {"bytes": "dGV4dA==", "fault": "not of the serde 'json'"},
        },
        {"key": {"bytes": "YWI="}, "value": {"bytes": "AP8=", "fault": "not of the serde 'json'"}},
    ]


def test_a_prefix_and_a_key_choose(tmp_path: Path) -> None:
    """The prefix is one of the key's bytes; a key that is not there prints nothing."""
    store = (serde("string"), serde("bytes"))
    string = serde("string")
    with closing(_view(tmp_path, *PAIRS)) as view:
        for query, count in (
            (Query.of(string, None, "a", is_hex=False), 2),
            (Query.of(string, None, "6162", is_hex=True), 1),
            (Query.of(string, "a", None, is_hex=False), 1),
            (Query.of(string, "z", None, is_hex=False), 0),
        ):
            assert len(list(lines(view, store, query, None, as_json=False))) == count


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("string", "ü", "ü".encode()),
        ("bytes", "ü", "ü".encode()),
        ("integer", "7", b"\x00\x00\x00\x07"),
        ("long", "-1", b"\xff" * 8),
        ("double", "0.5", b"\x3f\xe0" + bytes(6)),
        ("json", '{"a": 1}', b'{"a":1}'),
    ],
)
def test_a_key_is_typed_as_its_serde_has_it(name: str, text: str, key: bytes) -> None:
    """A number as a number, JSON as JSON."""
    assert Query.of(serde(name), text, None, is_hex=False).key == key


@pytest.mark.parametrize(
    ("name", "key", "prefix", "rule"),
    [
        ("long", "x", None, "no key of the serde 'long'"),
        ("integer", "5000000000", None, "no key of the serde 'integer'"),
        ("json", "{", None, "no key of the serde 'json'"),
        ("long", None, "1", "are no texts"),
        ("string", "a", "a", "one pair alone"),
    ],
)
def test_a_malformed_key_is_refused(
    name: str, key: str | None, prefix: str | None, rule: str
) -> None:
    """In one line that names the option."""
    with pytest.raises(ConfigError, match=rule):
        Query.of(serde(name), key, prefix, is_hex=False)


def test_a_malformed_hexadecimal_number_is_refused() -> None:
    """With an example of one."""
    with pytest.raises(ConfigError, match="such as 00ff"):
        Query.of(serde("string"), "0g", None, is_hex=True)
