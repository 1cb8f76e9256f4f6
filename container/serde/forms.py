"""Forms: texts that define how the bytes of a store's keys, and of its values, are read.

A form is the name of a serde. For a serde with a schema, it is the kind, the schema's fingerprint
and the schema without parts that do not change what bytes mean: spaces, comments, some orders and
defaults. Two schemas with one fingerprint read the same bytes alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.serde_names import JSON, ConfiguredSerde, SchemaSerde
from homeport.container.serde.schema_serde import CODECS, schema_of
from homeport.job_coordinator.metadata.state_facts import StoreForms

_MOST = 32_000
"""The most characters of a schema in a form; of a longer one only the fingerprint is kept."""
_DIGITS = 16
_NAMED = 5


def form_of(entry: ConfiguredSerde, *, is_key: bool = False) -> str:
    """Return the form of the bytes that the serde ``entry`` writes; errors as of ``schema_of``.

    A value with a Schema Registry's wire format names its schema itself.
    """
    if not isinstance(entry, SchemaSerde):
        return entry
    if entry.registry and not (is_key and (entry.schema or entry.file)):
        return f"{entry.kind}-of-a-registry"
    meaning = CODECS[entry.kind].meaning(entry, schema_of(entry))
    text = json.dumps(meaning, separators=(",", ":"), ensure_ascii=False)
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    kind = f"{entry.kind}-of-a-registry" if entry.registry else entry.kind
    return f"{kind} {fingerprint} {text}" if len(text) <= _MOST else f"{kind} {fingerprint}"


def forms_of(serdes: tuple[ConfiguredSerde, ConfiguredSerde]) -> StoreForms:
    """Return the forms of keys and values with these ``serdes``; errors as of ``form_of``."""
    return StoreForms(form_of(serdes[0], is_key=True), form_of(serdes[1]))


def in_brief(forms: StoreForms) -> tuple[str, str]:
    """Return the forms of keys and of values, each as ``shown``."""
    return shown(forms.key), shown(forms.msg)


def shown(form: str) -> str:
    """Return the form in brief: its kind, and the fingerprint of its schema."""
    return " ".join(form.split(" ", 2)[:2])


def require_readable(
    store: str, serdes: tuple[ConfiguredSerde, ConfiguredSerde], recorded: StoreForms | None
) -> StoreForms:
    """Return the forms of the store: those ``recorded``, else those of its ``serdes``.

    ``serdes``: the serde of its keys and the serde of its values.

    Raises:
        ConfigError: the store's bytes have other forms than the serdes read.
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
        what = "keys" if part == "key" else "values"
        raise ConfigError(
            serde.schema_key if isinstance(serde, SchemaSerde) else key.named(store),
            shown(now),
            f"the {what} of store {store!r} were written by {shown(was)}, and by another "
            f"schema they would be read wrongly{_difference(was, now)}",
            "set the schema back, keep the new values in another store, or begin from nothing by "
            "run-job --reset-state",
        )
    return recorded


def _has_only_grown(was: str, now: str) -> bool:
    """Return whether a JSON schema has only got more fields, which are null in older objects."""
    old, new = _schema(was, JSON), _schema(now, JSON)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    return old.items() <= new.items()


def _difference(was: str, now: str) -> str:
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
