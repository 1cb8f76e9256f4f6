"""The serde that a configured name stands for: ours, or one of ``serializers.registry``."""

from __future__ import annotations

from homeport.config import keys
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.java_names import Kind, class_name, known_names, short_name


def serde_name(config: Config, key: str, name: str) -> str:
    """The serde that the value ``name`` of ``key`` stands for.

    Returns:
        string, json, bytes, integer, long or double.

    Raises:
        ConfigError: ``name`` is neither in ``serializers.registry`` nor usable without an entry.
    """
    registry_class = keys.SERIALIZERS_REGISTRY_CLASS.read(config, name)
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
