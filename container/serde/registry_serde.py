"""Serdes with the wire format of the Confluent Schema Registry: a zero byte, the schema's id, data.

confluent-kafka's own client and (de)serialisers do the work; they are an extra of homeport, and
imported only here. If the registry does not answer, or refuses, that is no fault of a record: the
container fails, and drops none. An id that the registry does not know is a fault of its record.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from homeport.config.declarations.all_keys import SERIALIZERS_REGISTRY_PROPERTY
from homeport.config.errors import ConfigError, WireError
from homeport.config.number_text import float_of, whole_of
from homeport.config.settings.serde_names import JSON, SchemaSerde
from homeport.container.serde.avro_layout import avro_layout
from homeport.container.serde.avro_serde import avro_meaning, column_type, parsed_schema, reader_of
from homeport.container.serde.avro_values import to_avro
from homeport.container.serde.columns import PARTS, Columns, object_columns, reason_of
from homeport.container.serde.json_schema_serde import json_columns, json_schema_serde
from homeport.container.serde.protobuf_serde import message_columns
from homeport.container.serde.protobuf_values import dict_of, message_of
from homeport.container.serde.serdes import Serde, SerdeFailedError, serde

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from google.protobuf.message import Message

_FOR_WRITING: Mapping[str, Callable[[str], object]] = {
    "auto.register.schemas": bool,
    "normalize.schemas": bool,
    "use.latest.version": bool,
    "use.schema.id": whole_of,
}
"""The properties of the serialisers; all others are the client's."""
_NUMBERS: Mapping[str, Callable[[str], object]] = {
    "timeout": float_of,
    "max.retries": whole_of,
    "cache.capacity": whole_of,
}
_HEADER_BYTES, _MAGIC = 5, b"\0"
_SCHEMAS = 1000
"""The readers of so many writers' schemas stay ready."""
_NOT_FOUND = 404
_Call = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Subject:
    """The keys, or the values, of a topic."""

    topic: str
    is_key: bool


def registry_serde(
    entry: SchemaSerde, subject: Subject, make: Callable[[Registry], Serde]
) -> Serde:
    """Return the serde that ``make`` returns for the registry of ``entry``, at ``subject``.

    Raises:
        ConfigError: the client's packages are not installed; the line names the key.
    """
    try:
        return make(Registry(entry, subject))
    except ImportError as error:
        raise ConfigError(
            SERIALIZERS_REGISTRY_PROPERTY.named(entry.name, "url"),
            entry.registry["url"],
            f"a package of the registry's client is not installed ({reason_of(error)})",
            "install homeport[schema-registry] for the interpreter of the job's containers",
        ) from None


class Registry:
    """The client of one registry, which makes the serde of an entry at one place.

    Where a schema is None, each record is read by its writer's schema, and written by the latest
    version of the subject.
    """

    def __init__(self, entry: SchemaSerde, subject: Subject) -> None:
        from confluent_kafka.schema_registry import (  # noqa: PLC0415 - only for a job with a registry
            SchemaRegistryClient,
            topic_subject_name_strategy,
        )
        from confluent_kafka.serialization import MessageField, SerializationContext  # noqa: PLC0415 - as above

        self._entry = entry
        self._subject = f"{subject.topic}-{'key' if subject.is_key else 'value'}"
        self._reading = {"subject.name.strategy": topic_subject_name_strategy}
        self._writing = self._reading | _typed(entry, _FOR_WRITING)
        own = {k: v for k, v in entry.registry.items() if k not in _FOR_WRITING}
        try:
            self._client: SchemaRegistryClient = SchemaRegistryClient(
                {**own, **_typed(replace(entry, registry=own), _NUMBERS)}
            )
        except (ValueError, TypeError) as error:
            raise ConfigError(
                SERIALIZERS_REGISTRY_PROPERTY.named(entry.name, "url"),
                entry.registry["url"],
                f"the registry's client does not take its properties ({reason_of(error)})",
                "correct them",
            ) from None
        field = MessageField.KEY if subject.is_key else MessageField.VALUE
        self._context = SerializationContext(subject.topic, field)

    def json(self, kind: pa.StructType | None) -> Serde:
        """Return the serde of JSON by the type ``kind``."""
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer  # noqa: PLC0415 - as above

        written = None if kind is None else json.dumps(_json_schema(kind, self._entry.name))
        read = JSONDeserializer(None, schema_registry_client=self._client, conf=self._reading)
        serializer = self._lazily(
            lambda conf: JSONSerializer(written, self._client, conf=conf), written
        )
        plain = serde(JSON) if kind is None else json_schema_serde(kind)

        def write(value: Any, context: Any) -> Any:  # noqa: ANN401 - a user's value
            # The library writes what json.dumps takes: no times, and text of any key.
            return serializer(json.loads(plain.to_bytes(value)), context)

        reader = self._reader(read, lambda _, data: plain.from_bytes(data))
        if kind is None:
            return self._made(write, reader, None)

        def framed(inner: Columns) -> Columns:
            part = inner.part
            return replace(
                inner,
                layout=None,  # it comes behind the number of its schema
                row=self._reader(read, lambda _, data: inner.row(data)),
                part=part and functools.lru_cache(PARTS)(lambda only: framed(part(only))),
            )

        return self._made(write, reader, lambda: framed(json_columns(kind)))

    def avro(self, schema: str | None) -> Serde:
        """Return the serde of Avro by the text ``schema``."""
        from confluent_kafka.schema_registry.avro import AvroSerializer  # noqa: PLC0415 - as above

        serializer = self._lazily(
            lambda conf: AvroSerializer(self._client, schema, conf=conf), schema
        )

        def columns() -> Columns:
            text = schema or self._latest()
            parsed = parsed_schema(self._entry.schema_key, text)
            found = object_columns(column_type(parsed), self._avro_reader(text, is_column=True))
            return replace(found, layout=avro_layout(parsed), has_layout=self._written_by(text))

        @functools.cache
        def exact() -> Callable[[Any], Any]:
            number = self._writing.get("use.schema.id")
            is_given = schema is not None and not self._writing.get("use.latest.version")
            try:
                if number is not None:
                    text = str(self._client.get_schema(number).schema_str)
                else:
                    text = schema if is_given and schema else self._latest()
                parsed = parsed_schema(self._entry.schema_key, text)
                return to_avro(parsed, is_whole=False)  # the latest may have others
            except ConfigError:  # the serialiser reports the fault, or takes the references
                return lambda value: value

        return self._made(
            lambda value, context: serializer(exact()(value), context),
            self._avro_reader(schema),
            columns,
        )

    def _written_by(self, text: str) -> Callable[[bytes], bool]:
        """Return whether values with a given header were written by the schema ``text`` itself."""
        key = self._entry.schema_key
        meaning = avro_meaning(key, text)

        @functools.lru_cache(_SCHEMAS)
        def is_same(number: int) -> bool:
            found = self._client.get_schema(number)
            has_more = found.references or found.rule_set
            return not has_more and avro_meaning(key, str(found.schema_str)) == meaning

        def has_header(header: bytes) -> bool:
            is_framed = header[:1] == _MAGIC and len(header) == _HEADER_BYTES
            try:
                return is_framed and is_same(int.from_bytes(header[1:]))
            except Exception:  # noqa: BLE001 - the reader of each value meets and reports it
                return False

        return has_header

    def _avro_reader(self, given: str | None, *, is_column: bool = False) -> Callable[[bytes], Any]:
        """Return a reader as that of ``avro_serde``; the library reads by references and rules.

        ``given``, ``is_column``: as for ``reader_of``.
        """
        from confluent_kafka.schema_registry.avro import AvroDeserializer  # noqa: PLC0415 - as above

        library = AvroDeserializer(self._client, given, conf=self._reading)

        @functools.lru_cache(_SCHEMAS)
        def of(number: int) -> Callable[[bytes], Any] | None:
            found = self._client.get_schema(number)
            if found.references or found.rule_set:
                return None
            written, asked = (
                None if text is None else parsed_schema(self._entry.schema_key, text)
                for text in (found.schema_str, given)
            )
            return reader_of(written, asked, is_column=is_column)

        def read(data: bytes, context: Any) -> Any:  # noqa: ANN401 - of the library
            is_framed = data[:1] == _MAGIC and len(data) >= _HEADER_BYTES
            own = of(int.from_bytes(data[1:_HEADER_BYTES])) if is_framed else None
            return library(data, context) if own is None else own(data[_HEADER_BYTES:])

        return self._reader(read)

    def protobuf(self, kind: type[Message]) -> Serde:
        """Return the serde of messages of ``kind``."""
        from confluent_kafka.schema_registry.protobuf import (  # noqa: PLC0415 - as above
            ProtobufDeserializer,
            ProtobufSerializer,
        )

        convert, made = dict_of(kind), message_of(kind)
        form = {"use.deprecated.format": False}
        serializer = self._lazily(
            lambda conf: ProtobufSerializer(kind, self._client, conf=conf | form), kind
        )
        read = ProtobufDeserializer(
            kind, conf=self._reading | form, schema_registry_client=self._client
        )
        reader = self._reader(read, lambda message, _: convert(message))
        return self._made(
            lambda value, context: serializer(made(value), context),
            reader,
            lambda: message_columns(kind, reader),
        )

    def _lazily(self, make: Callable[[dict[str, Any]], _Call], schema: object) -> _Call:
        """Return a serialiser that is made at the first write: an input needs none."""

        @functools.cache
        def made() -> _Call:
            conf = dict(self._writing)
            if schema is None:
                conf = {"auto.register.schemas": False, "use.latest.version": True} | conf
            return make(conf)

        def write(value: Any, context: Any) -> Any:  # noqa: ANN401 - a user's value
            return made()(value, context)

        return write

    def _made(
        self, write: _Call, read: Callable[[bytes], Any], columns: Callable[[], Columns] | None
    ) -> Serde:
        def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - a user's value
            try:
                data: bytes = write(value, self._context)
            except Exception as error:  # noqa: BLE001 - the library's serdes have no common error
                self._require_registry(error)
                raise TypeError(
                    f"the schema of the serde {self._entry.name!r} cannot carry it: "
                    f"{reason_of(error)}"
                ) from None
            return data

        return Serde(self._entry.kind, to_bytes, read, columns=columns)

    def _reader(
        self, deserialize: _Call, then: Callable[[Any, bytes], Any] = lambda value, _: value
    ) -> Callable[[bytes], Any]:
        """Return a reader that calls ``then`` with the value and the bytes after the header."""

        def read(data: bytes) -> Any:  # noqa: ANN401 - a user's value
            try:
                return then(deserialize(data, self._context), data[_HEADER_BYTES:])
            except Exception as error:  # noqa: BLE001 - the library's serdes have no common error
                self._require_registry(error)
                raise WireError(
                    f"not of the serde {self._entry.name!r}: {data[:80]!r} ({reason_of(error)})"
                ) from None

        return read

    def _latest(self) -> str:
        """Return the latest schema of the subject.

        Raises:
            ConfigError: the registry has none.
            SerdeFailedError: it does not answer.
        """
        try:
            text = self._client.get_latest_version(self._subject).schema.schema_str
        except Exception as error:  # noqa: BLE001 - whatever the client has against it
            self._require_registry(error)
            rule = f"the registry says no latest schema of {self._subject} ({reason_of(error)})"
            remedy = "give the schema by which its values are to be read"
            raise ConfigError(self._entry.schema_key, None, rule, remedy) from None
        return str(text)

    def _require_registry(self, error: Exception) -> None:
        """Raise SerdeFailedError if the registry itself is the cause of ``error``."""
        cause: BaseException | None = error
        while cause is not None:
            status = getattr(cause, "http_status_code", None)
            is_of_network = type(cause).__module__.partition(".")[0] in {"httpx", "httpx2"}
            if is_of_network or (status is not None and status != _NOT_FOUND):
                url = SERIALIZERS_REGISTRY_PROPERTY.named(self._entry.name, "url")
                said = f"the Schema Registry of {url} failed: {reason_of(cause)}"
                raise SerdeFailedError(said) from error
            cause = cause.__cause__ or cause.__context__


def _typed(entry: SchemaSerde, types: Mapping[str, Callable[[str], object]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in types.items():
        text = entry.registry.get(name)
        if text is None:
            continue
        try:
            found[name] = {"true": True, "false": False}[text] if kind is bool else kind(text)
        except (KeyError, ValueError):
            expected = "true or false" if kind is bool else "a number"
            raise ConfigError(
                SERIALIZERS_REGISTRY_PROPERTY.named(entry.name, name),
                text,
                f"it must be {expected}",
                f"write {expected}",
            ) from None
    return found


_JSON_TYPES: tuple[tuple[Callable[[pa.DataType], bool], dict[str, Any]], ...] = (
    (pa.types.is_integer, {"type": "integer"}),
    (pa.types.is_floating, {"type": "number"}),
    (pa.types.is_boolean, {"type": "boolean"}),
    (pa.types.is_date, {"type": "string", "format": "date"}),
    (pa.types.is_timestamp, {"type": "string", "format": "date-time"}),
    (pa.types.is_string, {"type": "string"}),
    (pa.types.is_binary, {"type": "string", "contentEncoding": "base64"}),
    (pa.types.is_decimal, {"type": ["string", "number"]}),
)


def _json_schema(kind: pa.DataType, title: str = "") -> dict[str, Any]:
    """Return the JSON Schema of values of ``kind``, each field of which may be missing or null."""
    if pa.types.is_struct(kind):
        fields = {f.name: {"oneOf": [{"type": "null"}, _json_schema(f.type)]} for f in kind}
        named = {"title": title} if title else {}
        return {**named, "type": "object", "properties": fields}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _json_schema(kind.value_type)}
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _json_schema(kind.item_type)}
    return next(schema for is_kind, schema in _JSON_TYPES if is_kind(kind))
