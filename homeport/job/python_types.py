"""Which serde carries the values of a Python type.

PURE.
"""

from __future__ import annotations

from typing import Any, get_origin

from homeport.config.errors import ConfigError

_SERDES: dict[object, str] = {
    str: "string",
    int: "long",
    float: "double",
    bytes: "bytes",
    bool: "json",
    dict: "json",
    list: "json",
    object: "json",
    Any: "json",
}


def serde_of(what: str, of_type: object) -> str:
    """Return the name of the serde for values of ``of_type``.

    ``what``: the argument that gave the type, for the error.

    Raises:
        ConfigError: no serde carries values of the type.
    """
    plain = _SERDES.get(get_origin(of_type) or of_type)
    if plain is not None:
        return plain
    raise ConfigError(
        what,
        getattr(of_type, "__name__", str(of_type)),
        "no serde carries it",
        "give str, int, float, bytes, dict or list",
    )
