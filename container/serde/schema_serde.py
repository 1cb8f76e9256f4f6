"""The serdes of entries of ``serializers.registry`` with a schema, and the table of their kinds."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeport.config.errors import ConfigError
from homeport.config.settings.serde_names import AVRO, JSON, PROTOBUF, SchemaSerde
from homeport.container.serde.avro_serde import (
    avro_meaning,
    avro_read_fault,
    avro_reading,
    avro_serde,
)
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.evolution.json_rules import json_fault
from homeport.container.serde.evolution.protobuf_rules import protobuf_fault
from homeport.container.serde.json_schema_serde import json_meaning, json_schema_serde
from homeport.container.serde.protobuf_serde import (
    message_class,
    protobuf_meaning,
    protobuf_reading,
    protobuf_serde,
)
from homeport.container.serde.registry_serde import Registry, Subject, registry_serde
from homeport.container.serde.serdes import Serde


@dataclass(frozen=True)
class Codec:
    """The functions of one kind of serde with a schema.

    ``schema`` parses the bytes of the entry's schema, for the others; ValueError where they are
    invalid. ``serde`` returns the serde of the schema. ``of_registry`` returns the serde at a
    Schema Registry; None stands for the registry's own schema. ``meaning`` returns JSON of all that
    decides what bytes mean; ``reading`` adds what decides how bytes of other schemas are read.
    ``fault`` returns why the bytes of a meaning are not read by a reading; None: they are.
    """

    schema: Callable[[SchemaSerde, bytes], Any]
    serde: Callable[[SchemaSerde, Any], Serde]
    of_registry: Callable[[Registry, Any], Serde]
    meaning: Callable[[SchemaSerde, Any], object]
    reading: Callable[[SchemaSerde, Any], object]
    fault: Callable[[Any, Any], str | None]


def _avro_text(_entry: SchemaSerde, data: bytes) -> str:
    text = data.decode()
    json.loads(text)
    return text


CODECS: Mapping[str, Codec] = {
    JSON: Codec(
        schema=lambda _, data: struct_of_ddl(data.decode()),
        serde=lambda _, kind: json_schema_serde(kind),
        of_registry=Registry.json,
        meaning=lambda _, kind: json_meaning(kind),
        reading=lambda _, kind: json_meaning(kind),
        fault=json_fault,
    ),
    AVRO: Codec(
        schema=_avro_text,
        serde=lambda entry, text: avro_serde(entry.schema_key, text),
        of_registry=Registry.avro,
        meaning=lambda entry, text: avro_meaning(entry.schema_key, text),
        reading=lambda entry, text: avro_reading(entry.schema_key, text),
        fault=avro_read_fault,
    ),
    PROTOBUF: Codec(
        schema=lambda entry, data: message_class(entry.schema_key, entry.file, data, entry.message),
        serde=lambda _, kind: protobuf_serde(kind),
        of_registry=Registry.protobuf,
        meaning=lambda _, kind: protobuf_meaning(kind),
        reading=lambda _, kind: protobuf_reading(kind),
        fault=protobuf_fault,
    ),
}
"""{kind of ``SCHEMA_KINDS``: its code}."""


def schema_serde(entry: SchemaSerde, subject: Subject) -> Serde:
    """Return the serde of ``entry``; errors as of ``schema_of``.

    ``subject``: its use, for a registry.
    """
    schema, codec = schema_of(entry), CODECS[entry.kind]
    if entry.registry:
        return registry_serde(entry, subject, lambda registry: codec.of_registry(registry, schema))
    return codec.serde(entry, schema)


def schema_of(entry: SchemaSerde) -> Any:  # noqa: ANN401 - as its codec takes it
    """Return json's type, avro's text or protobuf's class; None where the registry has it.

    A file of the schema is below a folder of ``sys.path``.

    Raises:
        ConfigError: the schema cannot be found, or is invalid; the line names its key.
    """
    data = entry.schema.encode() or (_content(entry) if entry.file else b"")
    if not data:
        return None
    try:
        return CODECS[entry.kind].schema(entry, data)
    except ValueError as error:
        raise ConfigError(
            entry.schema_key, entry.file or entry.schema, f"it is no schema: {error}", "correct it"
        ) from None


def _content(entry: SchemaSerde) -> bytes:
    for folder in sys.path:
        path = Path(folder or ".") / entry.file
        if path.is_file():
            return path.read_bytes()
    rule = "there is no such file in the job's package"
    remedy = "put it into yarn.package.path, and write its path below that folder"
    raise ConfigError(entry.schema_key, entry.file, rule, remedy)
