"""Forms: texts that define how the bytes of a store's keys, and of its values, are read.

A form is the name of a serde. For a serde with a schema, it is the kind, the schema's fingerprint
and the schema without parts that do not change what bytes mean: spaces, comments, some orders and
defaults. Two schemas with one fingerprint read the same bytes alike.
"""

import hashlib
import json

from homeport.config.settings.serde_names import ConfiguredSerde, SchemaSerde
from homeport.container.serde.class_serde import UNFIT, is_record_class, unfit
from homeport.container.serde.evolution.class_rules import class_meaning
from homeport.container.serde.schema_serde import CODECS, schema_of
from homeport.job_coordinator.metadata.state_facts import Reading, StoreForms
from homeport.job_coordinator.user_code import user_object

_MOST = 32_000
"""The most characters of a schema in a form; of a longer one only the fingerprint is kept."""
_DIGITS = 16
KeyedSerde = tuple[str, ConfiguredSerde]
"""(the configuration key that names it, the serde)."""


def form_of(entry: ConfiguredSerde, *, is_key: bool = False) -> str:
    """Return the form of the bytes that the serde ``entry`` writes; errors as of ``schema_of``.

    A value with a Schema Registry's wire format names its schema itself.
    """
    if not isinstance(entry, SchemaSerde):
        return entry
    if entry.registry and not (is_key and (entry.schema or entry.file)):
        return f"{entry.kind}-of-a-registry"
    kind = f"{entry.kind}-of-a-registry" if entry.registry else entry.kind
    return form_in(kind, CODECS[entry.kind].meaning(entry, schema_of(entry)))


def form_in(kind: str, meaning: object) -> str:
    """Return the form of bytes of ``kind`` with this meaning."""
    text = _json(meaning)
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{kind} {fingerprint} {text}" if len(text) <= _MOST else f"{kind} {fingerprint}"


def _json(schema: object) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def reading_of(key: KeyedSerde, value: KeyedSerde) -> Reading:
    """Return how the serdes of keys and values read; the form of a class has its fields too.

    Errors as of ``form_of``; ConfigError: a class cannot be loaded.
    """
    msg, reader = value[1], ""
    if isinstance(msg, SchemaSerde) and not msg.registry:
        reader = _json(CODECS[msg.kind].reading(msg, schema_of(msg)))
    return Reading(
        _described(*key, is_key=True), _described(*value), reader if len(reader) <= _MOST else ""
    )


def _described(key: str, entry: ConfiguredSerde, *, is_key: bool = False) -> str:
    if isinstance(entry, str) and ":" in entry:
        found = user_object(key, entry)
        if is_record_class(found):
            try:
                return form_in(entry, class_meaning(found))
            except UNFIT as error:
                raise unfit(key, entry, error) from None
    return form_of(entry, is_key=is_key)


def forms_of(serdes: tuple[ConfiguredSerde, ConfiguredSerde]) -> StoreForms:
    """Return the forms of keys and values with these ``serdes``; errors as of ``form_of``."""
    return StoreForms(form_of(serdes[0], is_key=True), form_of(serdes[1]))


def in_brief(forms: StoreForms) -> tuple[str, str]:
    """Return the forms of keys and of values, each as ``shown``."""
    return shown(forms.key), shown(forms.msg)


def kind_of(form: str) -> str:
    """Return the kind in a form: the serde's name, or that of its class."""
    return form.split(" ", 1)[0]


def shown(form: str) -> str:
    """Return the form in brief: its kind, and the fingerprint of its schema."""
    return " ".join(form.split(" ", 2)[:2])
