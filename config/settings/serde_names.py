"""The serde that a configured name stands for: ours, or one of ``serializers.registry``."""

from __future__ import annotations

import json

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.java_names import Kind, class_name, known_names, short_name

AVRO = "avro"


def serde_name(config: Config, key: str, name: str) -> str:
    """The serde that the value ``name`` of ``key`` stands for.

    Returns:
        string, json, bytes, integer, long or double; ``module:Class`` of the job's own; or avro,
        a space, and its schema as JSON.

    Raises:
        ConfigError: ``name`` is neither in ``serializers.registry`` nor usable without an entry; or
            it is avro, and has no schema.
    """
    registry_class = keys.SERIALIZERS_REGISTRY_CLASS.read(config, name)
    if registry_class == AVRO:
        return f"{AVRO} {_schema(config, name)}"
    if registry_class is not None:
        registry_key = keys.SERIALIZERS_REGISTRY_CLASS.named(name)
        return class_name(Kind.SERDE, registry_key, registry_class)
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


def _schema(config: Config, name: str) -> str:
    key = keys.SERIALIZERS_REGISTRY_SCHEMA.named(name)
    text = config.require(key, "write the schema of its values, as JSON in one line")
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise ConfigError(key, text, f"it must be JSON ({error})", "correct it") from None
    return json.dumps(schema, separators=(",", ":"))
