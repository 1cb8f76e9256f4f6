"""How the bytes of a store are read: the form of its keys, and of its values, as a text.

A form is the name of a serde; of one with a schema its kind, the fingerprint of the schema, and the
schema as it decides what the bytes mean: without spaces, order, comments or defaults that do not.
Two schemas with one fingerprint read the same bytes alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.serde_names import AVRO, JSON, SchemaSerde
from homeport.container.serde.schema_serde import schema_of
from homeport.job_coordinator.metadata.state_facts import StoreForms

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_MOST = 32_000
"""Most characters of a schema in a form; a longer one has its fingerprint alone there."""
_DIGITS = 16
_NAMED = 5
_OF_AVRO = (
    *("type", "name", "fields", "symbols", "items", "values", "size"),
    *("logicalType", "precision", "scale"),
)


def form_of(name: str, *, is_key: bool = False) -> str:
    """Return the form of what the serde ``name`` of ``config.serde_names`` writes.

    A value with a Schema Registry's wire format names its schema itself.

    Raises:
        ConfigError: the schema cannot be had, or is none; the line names its key.
    """
    entry = SchemaSerde.unpacked(name)
    if entry is None:
        return name
    if entry.registry and not (is_key and (entry.schema or entry.file)):
        return f"{entry.kind}-of-a-registry"
    text = json.dumps(_meaning(entry), separators=(",", ":"), ensure_ascii=False)
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    kind = f"{entry.kind}-of-a-registry" if entry.registry else entry.kind
    return f"{kind} {fingerprint} {text}" if len(text) <= _MOST else f"{kind} {fingerprint}"


def forms_of(serdes: tuple[str, str]) -> StoreForms:
    """Return the forms of keys and values with these ``serdes``; errors as of ``form_of``."""
    return StoreForms(form_of(serdes[0], is_key=True), form_of(serdes[1]))


def in_brief(forms: StoreForms) -> tuple[str, str]:
    """Return those of keys and of values, each as ``shown``."""
    return shown(forms.key), shown(forms.msg)


def shown(form: str) -> str:
    """Return the form in brief: its kind, and the fingerprint of its schema."""
    return " ".join(form.split(" ", 2)[:2])


def require_readable(
    store: str, serdes: tuple[str, str], recorded: StoreForms | None
) -> StoreForms:
    """Return the forms that the store has from now on: those ``recorded``, else its serdes'.

    ``serdes``: of its keys and of its values.

    Raises:
        ConfigError: the bytes that it holds have other forms than those read.
    """
    wanted = forms_of(serdes)
    if recorded is None:
        return wanted
    for part, key, serde in (
        ("key", keys.STORE_KEY_SERDE, serdes[0]),
        ("msg", keys.STORE_MSG_SERDE, serdes[1]),
    ):
        was, now = getattr(recorded, part), getattr(wanted, part)
        if shown(was) == shown(now) or (part == "msg" and _has_only_grown(was, now)):
            continue
        entry = SchemaSerde.unpacked(serde)
        what = "keys" if part == "key" else "values"
        raise ConfigError(
            entry.schema_key if entry is not None else key.named(store),
            shown(now),
            f"the {what} of store {store!r} were written by {shown(was)}, and by another "
            f"schema they would be read wrongly{_difference(was, now)}",
            "set the schema back, keep the new values in another store, or begin from nothing by "
            "run-job --reset-state",
        )
    return recorded


def _has_only_grown(was: str, now: str) -> bool:
    """Return whether a JSON schema only has more fields, which are null in older objects."""
    old, new = _schema(was, JSON), _schema(now, JSON)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    return old.items() <= new.items()


def _difference(was: str, now: str) -> str:
    """Return the first fields that differ, where both schemas are at hand and have fields."""
    old, new = _fields(was), _fields(now)
    if not old or not new:
        return ""
    differing = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if not differing and list(old) != list(new):
        differing = ["the order of the fields"]
    if not differing:
        return ""
    named = [*differing[:_NAMED], *(["..."] if len(differing) > _NAMED else [])]
    return f" (different: {', '.join(named)})"


def _fields(form: str) -> Mapping[str, Any]:
    schema = _schema(form)
    if isinstance(schema, dict) and isinstance(schema.get("fields"), list):
        return {field["name"]: field["type"] for field in schema["fields"]}
    return schema if isinstance(schema, dict) else {}


def _schema(form: str, kind: str = "") -> object:
    found, _, rest = form.partition(" ")
    _, has_text, text = rest.partition(" ")
    if not has_text or kind not in {"", found}:
        return None
    try:
        return json.loads(text)
    except ValueError:  # another program has written it
        return None


def _meaning(entry: SchemaSerde) -> object:
    schema = schema_of(entry)
    if entry.kind == JSON:
        return _of_struct(schema)
    if entry.kind == AVRO:
        return _of_avro(_parsed(entry, schema))
    messages: dict[str, Any] = {}
    _of_message(schema.DESCRIPTOR, messages)
    return messages


def _of_struct(struct: pa.StructType) -> dict[str, str]:
    """An object's fields are found by their names."""
    return {name: str(struct.field(name).type) for name in sorted(f.name for f in struct)}


def _parsed(entry: SchemaSerde, schema: str) -> object:
    from homeport.container.serde.avro_serde import parsed_schema  # noqa: PLC0415 - an extra

    parsed: object = parsed_schema(entry.schema_key, schema)
    return parsed


def _of_avro(schema: object) -> object:
    """Return Avro's canonical form with the logical types, by which values are read too."""
    if isinstance(schema, list):
        return [_of_avro(branch) for branch in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {part: schema[part] for part in _OF_AVRO if part in schema}
    if "fields" in kept:
        kept["fields"] = [{"name": f["name"], "type": _of_avro(f["type"])} for f in kept["fields"]]
    for part in ("type", "items", "values"):
        if part in kept:
            kept[part] = _of_avro(kept[part])
    return kept["type"] if set(kept) == {"type"} else kept


def _of_message(descriptor: Descriptor, found: dict[str, Any]) -> None:
    """Put each message and enum that the bytes of one may hold into ``found``, by numbers."""
    if descriptor.full_name in found:
        return
    fields: list[Any] = []
    found[descriptor.full_name] = fields
    for field in sorted(descriptor.fields, key=lambda f: f.number):
        named = field.message_type or field.enum_type
        fields.append(
            [
                *(field.number, field.name, field.type, bool(field.is_repeated)),
                *(bool(field.has_presence), named.full_name if named is not None else ""),
            ]
        )
        if field.message_type is not None:
            _of_message(field.message_type, found)
        elif field.enum_type is not None:
            values = field.enum_type.values
            found[field.enum_type.full_name] = sorted([v.number, v.name] for v in values)
