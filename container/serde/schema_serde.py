"""The serde of an entry of ``serializers.registry`` with a schema: json, avro or protobuf."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from homeport.config.errors import ConfigError
from homeport.config.settings.serde_names import AVRO, JSON, SchemaSerde
from homeport.container.serde.avro_serde import avro_serde
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_schema_serde
from homeport.container.serde.protobuf_serde import message_class, protobuf_serde
from homeport.container.serde.registry_serde import Place, registry_serde
from homeport.container.serde.serdes import Serde


def schema_serde(entry: SchemaSerde, place: Place) -> Serde:
    """The serde of ``entry``; files of its schema are looked for where the job's modules are.

    ``place``: where it is used, for a registry.

    Raises:
        ConfigError: the schema cannot be had, or is none; the line names its key.
    """
    schema = schema_of(entry)
    if entry.registry:
        return registry_serde(entry, place, schema)
    if entry.kind == JSON:
        return json_schema_serde(schema)
    if entry.kind == AVRO:
        return avro_serde(entry.schema_key, schema)
    return protobuf_serde(schema)


def schema_of(entry: SchemaSerde) -> Any:  # noqa: ANN401 - as registry_serde takes it
    """Return json's type, avro's text or protobuf's class; None where the registry has it.

    Raises:
        ConfigError: the schema cannot be had, or is none; the line names its key.
    """
    data = entry.schema.encode() or (_content(entry) if entry.file else b"")
    if not data:
        return None
    shown = entry.file or entry.schema
    if entry.kind not in {JSON, AVRO}:
        return message_class(entry.schema_key, shown, data, entry.message)
    try:
        text = data.decode()
        if entry.kind == JSON:
            return struct_of_ddl(text)
        json.loads(text)
    except ValueError as error:
        raise ConfigError(
            entry.schema_key, shown, f"it is no schema: {error}", "correct it"
        ) from None
    return text


def _content(entry: SchemaSerde) -> bytes:
    for folder in sys.path:
        path = Path(folder or ".") / entry.file
        if path.is_file():
            return path.read_bytes()
    raise ConfigError(
        entry.schema_key,
        entry.file,
        "there is no such file in the job's package",
        "put it into yarn.package.path, and write its path below that folder",
    )
