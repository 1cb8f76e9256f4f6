"""What ``homeport state dump`` prints: keys and values of one directory, by the store's serdes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import asdict

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, WireError
from homeport.config.number_text import NUMBER_SERDES
from homeport.config.settings.serde_names import AVRO, SchemaSerde
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.classes import load_serde
from homeport.container.engine.storage_engine import StoreView
from homeport.container.progress.store_meta import META_FILE, parse_meta
from homeport.container.serde.evolution.marked_avro import avro_of_one_schema
from homeport.container.serde.serdes import Serde
from homeport.container.storage.directory import DirectoryFiles
from homeport.job_coordinator.model.wire_form import about


@dataclass(frozen=True, slots=True)
class Query:
    """Which pairs are wanted, in bytes; with neither a key nor a prefix all are."""

    key: bytes | None = None
    prefix: bytes | None = None

    @staticmethod
    def of(key_serde: Serde, key: str | None, prefix: str | None, *, is_hex: bool) -> Query:
        """Return what an operator typed; ConfigError where it is no key of the store."""
        if key is not None and prefix is not None:
            raise ConfigError("--prefix", prefix, "--key names one pair alone", "give one of them")
        if is_hex:
            return Query(_from_hex("--key", key), _from_hex("--prefix", prefix))
        wanted = None if key is None else _key_bytes(key_serde, key)
        if prefix is not None and key_serde.name in NUMBER_SERDES:
            rule = f"keys of the serde {key_serde.name!r} are no texts"
            raise ConfigError("--prefix", prefix, rule, "give the bytes, with --hex")
        return Query(wanted, None if prefix is None else prefix.encode())


def _from_hex(option: str, digits: str | None) -> bytes | None:
    if digits is None:
        return None
    try:
        return bytes.fromhex(digits.removeprefix("0x"))
    except ValueError:
        raise ConfigError(
            option, digits, "with --hex it must be pairs of hexadecimal digits", "such as 00ff"
        ) from None


def _key_bytes(key_serde: Serde, text: str) -> bytes:
    try:
        if key_serde.name in NUMBER_SERDES:
            return key_serde.to_bytes(NUMBER_SERDES[key_serde.name](text))
        if key_serde.name == "json":
            return key_serde.to_bytes(json.loads(text))
        return key_serde.to_bytes(text.encode() if key_serde.name == "bytes" else text)
    except Exception:  # noqa: BLE001 - a serde of the job's own may raise anything
        rule = f"it is no key of the serde {key_serde.name!r}"
        raise ConfigError("--key", text, rule, "correct it, or give its bytes with --hex") from None


def serdes_of(store: StoreConfig) -> tuple[Serde, Serde]:
    """Load the serdes of keys and values; own ones are looked for on PYTHONPATH."""
    return (
        load_serde(keys.STORE_KEY_SERDE.named(store.name), store.key_serde),
        load_serde(keys.STORE_MSG_SERDE.named(store.name), store.msg_serde),
    )


def serdes_of_files(store: StoreConfig, files: DirectoryFiles) -> tuple[Serde, Serde]:
    """Return as ``serdes_of``; an Avro value of another schema is bytes that it cannot read.

    ``files``: of the directory that has the store.
    """
    key, msg = serdes_of(store)
    entry = store.msg_serde
    if isinstance(entry, SchemaSerde) and entry.kind == AVRO and not entry.registry:
        with suppress(WireError):  # a damaged file hides no value
            meta = files.read(META_FILE, parse_meta)
            if meta is not None and meta.forms is not None:
                msg = avro_of_one_schema(entry, msg, meta.forms[1])
    return key, msg


def lines(
    view: StoreView, serdes: tuple[Serde, Serde], query: Query, limit: int | None, *, as_json: bool
) -> Iterator[str]:
    """Yield the wanted pairs, in the order of the keys' bytes, one line each.

    ``serdes``: of keys and of values. StoreError: a file of the store is damaged.
    """
    key_serde, msg_serde = serdes
    line = _json_line if as_json else _line
    for key, value in islice(_pairs(view, query), limit):
        yield line(_decoded(key_serde, key), _decoded(msg_serde, value))


def _pairs(view: StoreView, query: Query) -> Iterator[tuple[bytes, bytes]]:
    if query.key is not None:
        value = view.get(query.key)
        return iter([] if value is None else [(query.key, value)])
    prefix = query.prefix
    if prefix is None:
        return view.scan()
    return takewhile(lambda pair: pair[0].startswith(prefix), view.scan(prefix))


class ShownPair(Struct, frozen=True):
    """One pair of a store, for a script."""

    key: Annotated[Any, about("as its serde reads it")]
    value: Annotated[Any, about('likewise; bytes as {"bytes": base64}')]


@dataclass(frozen=True, slots=True)
class _Undecoded:
    """Bytes that the serde cannot read, and why."""

    data: bytes
    fault: str


def _decoded(of: Serde, data: bytes) -> Any:  # noqa: ANN401 - a user's value
    try:
        return of.from_bytes(data)
    except Exception:  # noqa: BLE001 - a serde of the job's own may raise anything
        return _Undecoded(data, f"not of the serde {of.name!r}")


def _line(key: Any, value: Any) -> str:  # noqa: ANN401 - a user's values
    return f"{_shown(key)} = {_shown(value)}"


def _shown(value: Any) -> str:  # noqa: ANN401 - a user's value
    if isinstance(value, _Undecoded):
        return f"{shown_bytes(value.data)} ({value.fault})"
    if isinstance(value, bytes):
        return shown_bytes(value)
    if isinstance(value, str):
        return value if value.isprintable() else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, default=str)


def shown_bytes(data: bytes) -> str:
    """Return bytes for people: the text that they are, else 0x and hexadecimal digits."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() else f"0x{data.hex()}"


def _json_line(key: Any, value: Any) -> str:  # noqa: ANN401 - a user's values
    body = asdict(ShownPair(_plain(key), _plain(value)))
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a user's value
    if isinstance(value, _Undecoded):
        return {"bytes": base64.b64encode(value.data).decode(), "fault": value.fault}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    return value
