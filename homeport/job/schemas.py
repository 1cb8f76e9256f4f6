"""Schemas of keys and values, declared in the place of a type: Avro, Protobuf and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from homeport.config.errors import ConfigError
from homeport.job.declared_keys import Late

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # a schema without ``of`` is one of dicts

    V = TypeVar("V", default=dict[str, Any])
else:
    from typing import TypeVar

    V = TypeVar("V")
Registry: TypeAlias = str | Mapping[str, object]
"""The URL of a Schema Registry, or the properties of its client, ``url`` among them."""
_FILE = re.compile(r"[^\s{\[\"<]+\.\w+")


@dataclass(frozen=True)
class _TextOf(Late):
    path: Path
    in_one_line: Callable[[str], str]
    is_outside = False

    def text(self, key: str, environment: Mapping[str, str]) -> str:  # noqa: ARG002 - as of Late
        return _read(key, self.path.name, lambda: self.in_one_line(self.path.read_text("utf-8")))


def _read(key: str, shown: str, text: Callable[[], str]) -> str:
    try:
        return text()
    except (OSError, ValueError) as error:
        rule = f"the schema cannot be read ({error})"
        raise ConfigError(key, shown, rule, "correct it") from None


class Schema(Generic[V]):
    """A schema of keys or values, which are dicts in Python.

    Args:
        schema: its text, or the name of its file, below the folder of the job's file. The text
            goes into the job's configuration. None: the Schema Registry has it.
        of: a TypedDict of its fields, for type checkers.
        registry: of the Confluent wire format; None: the bytes are those of the schema alone.
    """

    def __init__(
        self,
        schema: str | Path | None = None,
        *,
        of: type[V] | None = None,  # noqa: ARG002 - for type checkers alone
        registry: Registry | None = None,
    ) -> None:
        is_text = isinstance(schema, str) and _FILE.fullmatch(schema) is None
        self.file = None if is_text or schema is None else Path(schema)
        self.text = str(schema) if is_text else None
        self.registry = {"url": registry} if isinstance(registry, str) else dict(registry or {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.file or self.text or 'of the registry')!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]  # its properties may be a dict


class Json(Schema[V]):
    """JSON whose fields have the types of ``schema``, as in ``carrier STRING, delay INT``."""


class Avro(Schema[V]):
    """Avro, by ``schema``, its JSON or the name of its file, as in ``orders.avsc``."""


class Protobuf(Schema[V]):
    """Protobuf, by a descriptor set and the full name of a message.

    The descriptor set is a file of the job's package, which must be named by ``yarn.package.path``.

    Args:
        file: of ``protoc --include_imports --descriptor_set_out``.
        message: as in ``shop.Order``.
        of: as of ``Schema``.
        registry: as of ``Schema``.
    """

    def __init__(
        self,
        file: str | Path,
        message: str,
        *,
        of: type[V] | None = None,
        registry: Registry | None = None,
    ) -> None:
        super().__init__(Path(file), of=of, registry=registry)
        self.message = message


_KINDS: dict[type[Schema[Any]], str] = {Json: "json", Avro: "avro", Protobuf: "protobuf"}


def kind_of(schema: Schema[Any]) -> str:
    """Return the name of the serdes of such a schema.

    Raises:
        ConfigError: it is of none of the classes for them.
    """
    for of, kind in _KINDS.items():
        if isinstance(schema, of):
            return kind
    rule = "it is of no format"
    raise ConfigError("schema", repr(schema), rule, "write Json(...), Avro(...) or Protobuf(...)")


def entry_of(schema: Schema[Any], name: str, folder: Path) -> dict[str, object]:
    """Return the keys of the schema's entry ``name``; ``folder``: that of the job's file.

    Raises:
        ConfigError: its text is no schema.
    """
    prefix = f"serializers.registry.{name}"
    found: dict[str, object] = {f"{prefix}.class": kind_of(schema)}
    in_one_line = _json_in_one_line if isinstance(schema, Avro) else _in_one_line
    text, file = schema.text, schema.file
    if isinstance(schema, Protobuf):
        found |= {f"{prefix}.schema.file": str(file), f"{prefix}.message": schema.message}
    elif file is not None:
        found[f"{prefix}.schema"] = _TextOf(folder / file, in_one_line)
    elif text is not None:
        found[f"{prefix}.schema"] = _read(f"{prefix}.schema", text, lambda: in_one_line(text))
    return found | {f"{prefix}.schema.registry.{k}": v for k, v in schema.registry.items()}


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _json_in_one_line(text: str) -> str:
    return json.dumps(json.loads(text), separators=(",", ":"))


def name_of(schema: Schema[Any], used_for: str) -> str:
    """Return the name of the schema's entry: that of its file, or else what it is used for."""
    found = used_for if schema.file is None else schema.file.stem
    if isinstance(schema, Protobuf):
        found = schema.message
    return re.sub(r"\W+", "-", found).strip("-")


T = TypeVar("T")
Of: TypeAlias = type[T] | Schema[T]
"""What declares keys or values: a type of Python's, a class, or a schema."""
