"""Which serde carries the values of a Python type.

PURE.
"""

from collections.abc import Hashable
from typing import Any, get_origin

from homeport.config.errors import ConfigError
from homeport.container.serde.class_serde import is_record_class

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


def serde_of(what: str, of_type: object, main: str = "", *, is_key: bool = False) -> str:
    """Return the name of the serde for values of ``of_type``.

    Args:
        what: the argument that gave the type, for the error.
        of_type: a type of Python's, or a class whose fields have types, for values alone.
        main: the module as which containers import the file that Python runs.
        is_key: whether it is of keys: JSON of one object must always have the same bytes.

    Raises:
        ConfigError: no serde carries values of the type.
    """
    kind = get_origin(of_type) or of_type
    plain = _SERDES.get(kind) if isinstance(kind, Hashable) else None
    if plain is not None:
        return plain
    name = getattr(of_type, "__name__", str(of_type))
    if isinstance(of_type, str):
        rule, remedy = "it is text, and a type is wanted", "write the type without quotes"
        raise ConfigError(what, name, rule, remedy)
    if is_key or not is_record_class(of_type):
        classes = "" if is_key else ", or a dataclass, a msgspec Struct or a TypedDict"
        remedy = f"give str, int, float, bytes, dict or list{classes}"
        raise ConfigError(what, name, "no serde carries it", remedy)
    if of_type.__qualname__ != name:
        rule = f"containers import it, and {of_type.__qualname__} is within something else"
        raise ConfigError(what, name, rule, "let it stand at the top level of a module")
    module = of_type.__module__
    return f"{main if module == '__main__' else module}:{name}"
