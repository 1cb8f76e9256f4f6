"""Whether a job's serdes read what is in its stores, and what they write is read by its code."""

import json
from dataclasses import dataclass
from typing import Any

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import repartition_keys
from homeport.config.settings.serde_names import PROTOBUF, ConfiguredSerde, SchemaSerde
from homeport.container.serde.evolution.class_rules import class_fault
from homeport.container.serde.forms import form_in, kind_of, reading_of, shown
from homeport.container.serde.schema_serde import CODECS
from homeport.job_coordinator.metadata.state_facts import Reading, StoreForms, StoreSchemas

_UNKNOWN = "a schema that no record holds, as a long one, cannot be compared"
_REMEDY = (
    "set the schema back, rewrite the values by homeport state convert, keep the new values in "
    "another store, or begin from nothing by run-job --reset-state"
)
_OF_KEYS = (
    "set the schema back, keep the new keys in another {}, or begin from nothing by run-job "
    "--reset-state"
)


@dataclass(frozen=True)
class StoreSerdes:
    """The serdes of keys and of values of the store ``name``.

    ``host``: where its schema's file was found; empty: on the machine of the command.
    ``repartition``: the configuration key of a repartition's serde of keys: then it is no store,
    ``name`` is the topic, and its values, which no store keeps, count as bytes.
    """

    name: str
    key: ConfiguredSerde
    msg: ConfiguredSerde
    host: str = ""
    repartition: str = ""

    @property
    def key_key(self) -> str:
        """Return the configuration key of the serde of keys."""
        return self.repartition or keys.STORE_KEY_SERDE.named(self.name)

    @property
    def shown_name(self) -> str:
        """Return what it is, for people."""
        return f"{'repartition topic' if self.repartition else 'store'} {self.name!r}"

    def reading(self) -> Reading:
        """Return how the serdes read; ConfigError: a schema or a class cannot be had."""
        return reading_of(
            (self.key_key, self.key), (keys.STORE_MSG_SERDE.named(self.name), self.msg)
        )


def repartition_serdes(config: Config, host: str = "") -> dict[str, StoreSerdes]:
    """Return {topic of a repartition: its serdes}.

    The bytes of its keys choose the task that has the state of each, as those of a store's keys
    find it. Those of other inputs are their producers'.
    """
    return {
        str(topic): StoreSerdes(topic.stream, serde, "bytes", host, key)
        for topic, (key, serde) in repartition_keys(config).items()
    }


def require_readable(
    store: StoreSerdes, recorded: StoreSchemas | None, *, has_way_back: bool = False
) -> Reading:
    """Return how the store is read; require that all that it holds is.

    ``recorded``: by what that was written; None: it holds nothing. ``has_way_back``: the code that
    runs now must read what the new code writes.

    ConfigError: a key has other bytes, or values of one schema are not read by another.
    """
    wanted = store.reading()
    if recorded is None:
        return wanted
    require_same_keys(store, wanted, recorded)
    now = recorded.reading or Reading(*recorded.forms)
    for form in writers_of(recorded):
        written = now if shown(form) == shown(now.msg) else Reading("", form)
        fault = _fault(written, wanted)
        if fault is not None:
            raise _refused(
                store, store.msg, "msg", wanted.msg, f"were written by {shown(form)}{fault}"
            )
    if has_way_back:
        fault = _fault(wanted, now)
        if fault is not None:
            rule = f"are read by {shown(now.msg)} in the code that runs, which does not read it"
            raise _refused(
                store,
                store.msg,
                "msg",
                wanted.msg,
                f"{rule}{fault}",
                "make a change that both read, or stop the job and admit this one, without a way "
                "back: by run-job, off YARN by homeport state convert",
            )
    return wanted


def require_admitted(store: StoreSerdes, recorded: StoreSchemas | None) -> Reading:
    """Return as ``require_readable``, for a container.

    Values of a schema that no run-job has admitted may come from a file of this host alone: the
    other containers must read them too.
    """
    brief = shown(store.reading().msg)
    is_known = recorded is None or brief in {
        recorded.announced,
        *(shown(form) for form in writers_of(recorded)),
    }
    return require_readable(store, recorded, has_way_back=not is_known)


def claim_of(reading: Reading) -> StoreForms:
    """Return what a container claims that begins a store: the forms in brief."""
    return StoreForms(shown(reading.key), shown(reading.msg))


def require_first(store: StoreSerdes, first: StoreForms | None) -> None:
    """Require that a store that is begun has the schemas of ``first``; None: it was begun before.

    ConfigError: another container was first, with others.
    """
    wanted = store.reading()
    own = claim_of(wanted)
    if first is None or first == own:
        return
    is_key = first.key != own.key
    serde, part, form = store.msg, "msg", wanted.msg
    if is_key:
        serde, part, form = store.key, "key", wanted.key
    rule = (
        f"are {first.key if is_key else first.msg} in another container, which began the store at "
        "the same time"
    )
    raise _refused(store, serde, part, form, rule, "give all hosts one schema, and start again")


def writers_of(recorded: StoreSchemas) -> tuple[str, ...]:
    """Return the forms in which the store's values were written, the first container's first.

    Those of a class are left out where its fields were not recorded with it.
    """
    first = recorded.forms.msg
    has_later = any(kind_of(form) == first for form in recorded.later)
    known = recorded.later if has_later else (first, *recorded.later)
    return tuple(dict.fromkeys(known))


def is_read_by_first(first: StoreForms, reading: Reading) -> bool:
    """Return whether the schema of the first container reads what ``reading`` writes.

    A version that knows no other schema compares its own with that one alone. Those of a class it
    does not compare.
    """
    return " " not in first.msg or _fault(reading, Reading(*first)) is None


def require_same_keys(store: StoreSerdes, wanted: Reading, recorded: StoreSchemas) -> None:
    """Require that keys have the bytes that they had; else ConfigError."""
    was, name = recorded.forms.key, kind_of(wanted.key)
    if was == name and ":" in name:
        if recorded.reading is None or " " not in recorded.reading.key:
            return  # a class whose fields were not recorded, from before
        was = recorded.reading.key
    if shown(was) != shown(wanted.key):
        rule = f"were written by {shown(was)}, and keys keep their bytes"
        remedy = _OF_KEYS.format("repartition and store" if store.repartition else "store")
        raise _refused(store, store.key, "key", wanted.key, rule, remedy)


def _refused(
    store: StoreSerdes,
    serde: ConfiguredSerde,
    part: str,
    form: str,
    rule: str,
    remedy: str = _REMEDY,
) -> ConfigError:
    key, where = store.key_key if part == "key" else keys.STORE_MSG_SERDE.named(store.name), ""
    if isinstance(serde, SchemaSerde):
        key = serde.schema_key
        if serde.file and store.host:
            where = f"by {serde.file} of host {store.host}, "
    what = "keys" if part == "key" else "values"
    return ConfigError(key, shown(form), f"{where}the {what} of {store.shown_name} {rule}", remedy)


def _fault(written: Reading, reading: Reading) -> str | None:
    """Return why values of ``written`` are not read by ``reading``, to follow a rule.

    What is required, and the oneofs, of Protobuf are in no form: those of the newest writer count.
    """
    writer, form = written.msg, reading.msg
    kind, has_all = kind_of(form), bool(written.reader) and kind_of(form) == PROTOBUF
    if shown(writer) == shown(form) and (not has_all or written.reader == reading.reader):
        return None
    if writer == kind and ":" in kind:
        return None  # a class whose fields were not recorded, from before
    if kind_of(writer) != kind or " " not in writer or " " not in form:
        return ", and would be read wrongly"
    was = json.loads(written.reader) if has_all else schema_in(writer)
    now = json.loads(reading.reader) if reading.reader else schema_in(form)
    if was is None or now is None:
        return f"; {_UNKNOWN}"
    try:
        fault = (class_fault if ":" in kind else CODECS[kind].fault)(was, now)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, StopIteration):
        fault = "the record of it is damaged"
    return None if fault is None else f"; {fault}"


def schema_in(form: str) -> Any:  # noqa: ANN401 - JSON
    """Return the schema in a form; None: it has none, or another program has written it."""
    kind, _, rest = form.partition(" ")
    text = rest.partition(" ")[2]
    try:
        found = json.loads(text) if text else None
    except ValueError:
        return None
    return found if form_in(kind, found) == form else None
