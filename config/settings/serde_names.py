"""The serde that a configured name stands for: ours, or one of ``serializers.registry``."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.java_names import Kind, class_name, known_names, short_name

JSON = "json"
AVRO = "avro"
PROTOBUF = "protobuf"


@dataclass(frozen=True)
class SchemaSerde:
    """An entry of ``serializers.registry`` that has a schema; as text, its name.

    ``kind``: one of ``SCHEMA_KINDS``. ``schema``: its text, where that is in the configuration;
    ``file``: where it is instead. ``registry``: properties of the Schema Registry's client, such
    as ``url``, which may hold secrets; empty: there is none.
    """

    kind: str
    name: str
    schema: str = ""
    file: str = ""
    message: str = ""
    registry: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def __str__(self) -> str:
        return self.name

    @property
    def schema_key(self) -> str:
        """Return the configuration key that has the schema, or its file."""
        key = (
            keys.SERIALIZERS_REGISTRY_SCHEMA_FILE if self.file else keys.SERIALIZERS_REGISTRY_SCHEMA
        )
        return key.named(self.name)

    @property
    def is_per_stream(self) -> bool:
        """Return whether the registry alone has the schema, for the columns of one stream."""
        return SCHEMA_KINDS[self.kind].has_typed_registry and not (self.schema or self.file)


ConfiguredSerde = str | SchemaSerde
"""``string``, ``json``, ``bytes``, ``integer``, ``long``, ``double``; ``module:Class`` of the job's
own; or an entry with a schema."""


def serde_name(config: Config, key: str, name: str) -> ConfiguredSerde:
    """Return the serde that the value ``name`` of ``key`` stands for.

    ConfigError: ``name`` is neither in ``serializers.registry`` nor usable without an entry, or
    the schema of its entry is incomplete or contradicts itself.
    """
    registry_class = keys.SERIALIZERS_REGISTRY_CLASS.read(config, name)
    if registry_class is not None:
        if registry_class in SCHEMA_KINDS:
            return _entry(config, registry_class, name)
        registry_key = keys.SERIALIZERS_REGISTRY_CLASS.named(name)
        kind = class_name(Kind.SERDE, registry_key, registry_class)
        return _entry(config, kind, name) if kind in SCHEMA_KINDS else kind
    short = short_name(Kind.SERDE, name)
    if short is None:
        remedy = (
            f"write one of {', '.join(known_names(Kind.SERDE))}, or set "
            f"{keys.SERIALIZERS_REGISTRY_CLASS.named(name)}"
        )
        raise ConfigError(key, name, "no such serde is known", remedy)
    return short


def _entry(config: Config, kind: str, name: str) -> ConfiguredSerde:
    """Return the entry ``name``; the plain serde ``kind`` where it needs no schema and has none."""
    row = SCHEMA_KINDS[kind]
    entry = SchemaSerde(
        kind,
        name,
        keys.SERIALIZERS_REGISTRY_SCHEMA.read(config, name) or "",
        keys.SERIALIZERS_REGISTRY_SCHEMA_FILE.read(config, name) or "",
        keys.SERIALIZERS_REGISTRY_MESSAGE.read(config, name) or "",
        dict(config.subset(keys.SERIALIZERS_REGISTRY_PROPERTY.named(name, ""))),
    )
    _check_registry(entry)
    if not (entry.schema or entry.file or entry.registry) and row.is_plain_without:
        return kind
    row.check(config, entry)
    if entry.schema and entry.file:
        rule = f"{keys.SERIALIZERS_REGISTRY_SCHEMA.named(name)} is set too"
        raise ConfigError(entry.schema_key, entry.file, rule, "set one of the two")
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
        rule = "the schema of a protobuf serde is a descriptor set, which is a file"
        remedy = f"set {keys.SERIALIZERS_REGISTRY_SCHEMA_FILE.named(entry.name)}"
        raise keys.SERIALIZERS_REGISTRY_SCHEMA.error(entry.schema, rule, remedy, entry.name)
    config.require(
        keys.SERIALIZERS_REGISTRY_SCHEMA_FILE.named(entry.name),
        "name its descriptor set, a file of the job's package",
    )
    config.require(
        keys.SERIALIZERS_REGISTRY_MESSAGE.named(entry.name), "write package.Message of its values"
    )


def _check_avro(config: Config, entry: SchemaSerde) -> None:
    if not (entry.schema or entry.file or entry.registry):
        config.require(entry.schema_key, "write the schema of its values, as JSON in one line")
    if not entry.schema or entry.file:
        return
    try:
        json.loads(entry.schema)
    except ValueError as error:
        raise ConfigError(
            entry.schema_key, entry.schema, f"it must be JSON ({error})", "correct it"
        ) from None


@dataclass(frozen=True)
class SchemaKind:
    """A kind of serde with a schema, as the configuration has it.

    ``check``: raises ConfigError where an entry lacks the schema that this kind needs.
    ``is_plain_without``: whether an entry without a schema is the plain serde of that name.
    ``has_typed_registry``: whether a schema of a Schema Registry gives the types of columns.
    """

    check: Callable[[Config, SchemaSerde], None]
    is_plain_without: bool = False
    has_typed_registry: bool = False


SCHEMA_KINDS: Mapping[str, SchemaKind] = {
    JSON: SchemaKind(lambda _config, _entry: None, is_plain_without=True),
    AVRO: SchemaKind(_check_avro, has_typed_registry=True),
    PROTOBUF: SchemaKind(_check_protobuf),
}
"""{value of ``serializers.registry.<name>.class``: its kind}; ``CODECS`` has the code of each."""
