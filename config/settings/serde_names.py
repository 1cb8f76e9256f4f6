"""The serde that a configured name stands for: ours, or one of ``serializers.registry``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.java_names import Kind, class_name, known_names, short_name

JSON = "json"
AVRO = "avro"
PROTOBUF = "protobuf"
_KINDS = (JSON, AVRO, PROTOBUF)


@dataclass(frozen=True)
class SchemaSerde:
    """An entry of ``serializers.registry`` that has a schema.

    ``schema``: its text, where that is in the configuration; ``file``: where it is instead.
    ``registry``: properties of the Schema Registry's client, such as ``url``; empty: there is none.
    """

    kind: str
    name: str
    schema: str = ""
    file: str = ""
    message: str = ""
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def schema_key(self) -> str:
        """The configuration key that has the schema, or its file."""
        key = (
            keys.SERIALIZERS_REGISTRY_SCHEMA_FILE if self.file else keys.SERIALIZERS_REGISTRY_SCHEMA
        )
        return key.named(self.name)

    def packed(self) -> str:
        """All of it as a text, which may hold secrets of the registry."""
        return f"{self.kind} {json.dumps(asdict(self), separators=(',', ':'))}"

    @staticmethod
    def unpacked(text: str) -> SchemaSerde | None:
        """What ``packed`` made ``text`` of; None where it is the name of another serde."""
        _, space, rest = text.partition(" ")
        return SchemaSerde(**json.loads(rest)) if space else None


def serde_name(config: Config, key: str, name: str) -> str:
    """The serde that the value ``name`` of ``key`` stands for.

    Returns:
        string, json, bytes, integer, long or double; ``module:Class`` of the job's own; or a
        ``SchemaSerde``, packed.

    Raises:
        ConfigError: ``name`` is neither in ``serializers.registry`` nor usable without an entry; or
            what the entry says of its schema contradicts itself or is too little.
    """
    registry_class = keys.SERIALIZERS_REGISTRY_CLASS.read(config, name)
    if registry_class is not None:
        registry_key = keys.SERIALIZERS_REGISTRY_CLASS.named(name)
        kind = registry_class
        if kind not in _KINDS:
            kind = class_name(Kind.SERDE, registry_key, registry_class)
        entry = _entry(config, kind, name) if kind in _KINDS else None
        return kind if entry is None else entry.packed()
    short = short_name(Kind.SERDE, name)
    if short is None:
        raise ConfigError(
            key,
            name,
            "no such serde is known",
            f"write one of {', '.join(known_names(Kind.SERDE))}, or set "
            f"{keys.SERIALIZERS_REGISTRY_CLASS.named(name)}",
        )
    return short


def _entry(config: Config, kind: str, name: str) -> SchemaSerde | None:
    """What the entry ``name`` says of its schema; None for json without any."""
    entry = SchemaSerde(
        kind,
        name,
        keys.SERIALIZERS_REGISTRY_SCHEMA.read(config, name) or "",
        keys.SERIALIZERS_REGISTRY_SCHEMA_FILE.read(config, name) or "",
        keys.SERIALIZERS_REGISTRY_MESSAGE.read(config, name) or "",
        dict(config.subset(keys.SERIALIZERS_REGISTRY_PROPERTY.named(name, ""))),
    )
    _check_registry(entry)
    if kind == PROTOBUF:
        _check_protobuf(config, entry)
    elif not (entry.schema or entry.file or entry.registry):
        if kind == JSON:
            return None
        config.require(entry.schema_key, "write the schema of its values, as JSON in one line")
    if entry.schema and entry.file:
        raise ConfigError(
            entry.schema_key,
            entry.file,
            f"{keys.SERIALIZERS_REGISTRY_SCHEMA.named(name)} is set too",
            "set one of the two",
        )
    if kind == AVRO and entry.schema:
        _check_json(entry)
    return entry


def _check_registry(entry: SchemaSerde) -> None:
    key = keys.SERIALIZERS_REGISTRY_URL.named(entry.name)
    url = entry.registry.get("url", "").strip()
    if entry.registry and not url:
        raise ConfigError(
            key, None, "properties of a registry are set", "write its address, or remove them"
        )
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError(
            key, url, "it must begin with http:// or https://", "write http://host:8081"
        )


def _check_protobuf(config: Config, entry: SchemaSerde) -> None:
    if entry.schema:
        raise ConfigError(
            keys.SERIALIZERS_REGISTRY_SCHEMA.named(entry.name),
            entry.schema,
            "the schema of a protobuf serde is a descriptor set, which is a file",
            f"set {keys.SERIALIZERS_REGISTRY_SCHEMA_FILE.named(entry.name)}",
        )
    config.require(
        keys.SERIALIZERS_REGISTRY_SCHEMA_FILE.named(entry.name),
        "name its descriptor set, a file of the job's package",
    )
    config.require(
        keys.SERIALIZERS_REGISTRY_MESSAGE.named(entry.name), "write package.Message of its values"
    )


def _check_json(entry: SchemaSerde) -> None:
    try:
        json.loads(entry.schema)
    except ValueError as error:
        raise ConfigError(
            entry.schema_key, entry.schema, f"it must be JSON ({error})", "correct it"
        ) from None
