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
_REGISTRY = "serializers.registry"


@dataclass(frozen=True)
class _TextOf(Late):
    """The text of a file, in one line."""

    path: Path
    in_one_line: Callable[[str], str]
    is_outside = False

    def text(self, key: str, environment: Mapping[str, str]) -> str:  # noqa: ARG002 - as of Late
        try:
            return self.in_one_line(self.path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            rule = f"the schema cannot be read ({error})"
            raise ConfigError(key, self.path.name, rule, "correct it") from None


class Schema(Generic[V]):
    """A schema of keys or values, which are dicts in Python.

    Args:
        schema: its text, or the name of its file, below the folder of the job's file. The text
            goes into the job's configuration. None: the Schema Registry has it.
        of: a TypedDict of its fields, for type checkers.
        registry: of the Confluent wire format; None: the bytes are those of the schema alone.
    """

    kind: str

    def __init__(
        self,
        schema: str | Path | None = None,
        *,
        of: type[V] | None = None,  # noqa: ARG002 - for type checkers alone
        registry: Registry | None = None,
    ) -> None:
        self._set(schema, registry)

    def _set(self, schema: str | Path | None, registry: Registry | None) -> None:
        is_text = isinstance(schema, str) and _FILE.fullmatch(schema) is None
        self.file = None if is_text or schema is None else Path(schema)
        self.text = str(schema) if is_text else None
        self.registry = {"url": registry} if isinstance(registry, str) else dict(registry or {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.file or self.text or 'of the registry')!r})"

    def __eq__(self, other: object) -> bool:
        """Return whether both are one entry of ``serializers.registry``."""
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]  # its properties may be a dict

    def keys(self, name: str, folder: Path) -> dict[str, object]:
        """Return the keys of its entry ``name``; ``folder``: that of the job's file.

        Raises:
            ConfigError: its text is no schema.
        """
        prefix = f"{_REGISTRY}.{name}"
        found: dict[str, object] = {f"{prefix}.class": self.kind}
        if self.file is not None:
            found[f"{prefix}.schema"] = _TextOf(folder / self.file, self._in_one_line)
        elif self.text is not None:
            try:
                found[f"{prefix}.schema"] = self._in_one_line(self.text)
            except ValueError as error:
                rule = f"the schema cannot be read ({error})"
                raise ConfigError(f"{prefix}.schema", self.text, rule, "correct it") from None
        return found | {f"{prefix}.schema.registry.{k}": v for k, v in self.registry.items()}

    def _in_one_line(self, text: str) -> str:
        return " ".join(text.split())


class Json(Schema[V]):
    """JSON whose fields have the types of ``schema``, as in ``carrier STRING, delay INT``."""

    kind = "json"


class Avro(Schema[V]):
    """Avro, by ``schema``, its JSON or the name of its file, as in ``orders.avsc``."""

    kind = "avro"

    def _in_one_line(self, text: str) -> str:
        return json.dumps(json.loads(text), separators=(",", ":"))


class Protobuf(Schema[V]):
    """Protobuf, by a descriptor set and the full name of a message.

    The descriptor set is a file of the job's package, which must be named by ``yarn.package.path``.

    Args:
        file: of ``protoc --include_imports --descriptor_set_out``.
        message: as in ``shop.Order``.
        of: as of ``Schema``.
        registry: as of ``Schema``.
    """

    kind = "protobuf"

    def __init__(
        self,
        file: str | Path,
        message: str,
        *,
        of: type[V] | None = None,  # noqa: ARG002 - as of Schema
        registry: Registry | None = None,
    ) -> None:
        self._set(Path(file), registry)
        self.message = message

    def keys(self, name: str, folder: Path) -> dict[str, object]:  # noqa: ARG002 - it is no text
        """Return the keys of its entry ``name``."""
        prefix = f"{_REGISTRY}.{name}"
        found: dict[str, object] = {
            f"{prefix}.class": self.kind,
            f"{prefix}.schema.file": str(self.file),
            f"{prefix}.message": self.message,
        }
        return found | {f"{prefix}.schema.registry.{k}": v for k, v in self.registry.items()}


def name_of(schema: Schema[Any], used_for: str) -> str:
    """Return the name of the schema's entry: that of its file, or else what it is used for."""
    found = used_for if schema.file is None else schema.file.stem
    if isinstance(schema, Protobuf):
        found = schema.message
    return re.sub(r"\W+", "-", found).strip("-")


T = TypeVar("T")
Of: TypeAlias = type[T] | Schema[T]
"""What declares keys or values: a type of Python's, a class, or a schema."""
