"""What a job keeps: its stores, reference data and windows, by the keys that declare them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream, is_topic_name
from homeport.job.declared_keys import DeclaredKeys
from homeport.job.functions import Functions, none_of_job, of_message, require_plain
from homeport.job.handles import Calls, Reference, Store
from homeport.job.python_types import serde_of
from homeport.job.schemas import Of, Schema, entry_of, kind_of, name_of
from homeport.job.windows import SERDES, Emit, Window, spec_of

SYSTEM = "kafka"
"""The name of the job's Kafka."""
_DEAD, _DEAD_STREAM = "job.dead_letters", "task.dead.letter.stream"

A = TypeVar("A")
K = TypeVar("K")
V = TypeVar("V")
_Function = TypeVar("_Function", bound=Callable[..., object])


def whole(declare: _Function) -> _Function:
    """Return the method of a job, which leaves no key behind where it is refused."""

    @functools.wraps(declare)
    def call(job: Stores, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - of any method
        keys, schemas = job._keys, job._schemas  # noqa: SLF001 - of the class below
        parts: tuple[dict[str, Any], ...] = keys.data, keys.lines, schemas
        before = [dict(part) for part in parts]
        try:
            return declare(job, *given, **named)
        except BaseException:  # Ctrl-C in a notebook too; it goes on below
            for part, old in zip(parts, before, strict=True):
                part.clear()
                part.update(old)
            raise

    return call  # type: ignore[return-value]  # it takes and returns the same


class Stores:
    """The part of ``Job`` that declares stores."""

    name: str
    _file: Path | None
    _folder: Path
    _keys: DeclaredKeys
    _calls: Calls
    _functions: Functions

    def __init__(self) -> None:
        self._read: list[str] = []
        self._broadcast: list[str] = []
        self._schemas = dict[str, Schema[Any]]()

    @whole
    def store(
        self, name: str, *, key: Of[K], value: Of[V], changelog: str | None = None
    ) -> Store[K, V]:
        """Declare a store with the types of its keys and values.

        ``changelog``: its topic; default ``<job>-<store>-changelog``. It is settled once the job
        has state.
        """
        self._keep_logged(name, key, value, changelog)
        return Store(name, self._calls, key, value)  # type: ignore[abstract]  # its methods are added

    @whole
    def reference(
        self,
        name: str,
        *,
        key: Of[K],
        value: Of[V],
        topic: str | None = None,
        broadcast: int | None = None,
        bootstrap: bool = True,
        versions: str | None = None,
    ) -> Reference[K, V]:
        """Declare a store that a topic fills and functions read.

        Args:
            name: of the store.
            key: the type of the topic's keys.
            value: the type of the topic's values; a null deletes its key.
            topic: the name of the topic; None: that of the store.
            broadcast: the number of the topic's partitions, all of which each container has; None:
                a task has the partitions that it has of the inputs.
            bootstrap: whether a start reads the topic to its end before other inputs.
            versions: the header of markers where the topic carries whole versions of the data.
        """
        topic = name if topic is None else topic
        stream = self._stream("job.reference", topic, key, value)
        self._keep("job.reference", name, key, value)
        self._keys[f"stores.{name}.adstore.input"] = str(stream)
        if versions is not None:
            self._keys[f"stores.{name}.adstore.version.marker.header"] = versions
        if bootstrap:
            self._keys[f"{_of_stream(topic)}.bootstrap"] = True
        if broadcast is None:
            self._read.append(str(stream))
        else:
            last = number("broadcast of job.reference", broadcast, least=1) - 1
            self._broadcast.append(f"{stream}#[0-{last}]")
        return Reference(name, self._calls, key, value)  # type: ignore[abstract]  # as above

    @overload
    def window(
        self,
        name: str,
        *,
        value: type[V],
        add: None = None,
        merge: Callable[[V, V], V] | None = None,
        init: Callable[[], V] | None = None,
        meaning: str | None = None,
        size: int | None = None,
        step: int | None = None,
        gap: int | None = None,
        late: int | None = None,
        keep: int = 0,
        emit: Emit = "close",
        changelog: str | None = None,
    ) -> Window[V, V]: ...
    @overload
    def window(
        self,
        name: str,
        *,
        value: type[V],
        add: Callable[[V, A], V],
        merge: Callable[[V, V], V] | None = None,
        init: Callable[[], V] | None = None,
        meaning: str | None = None,
        size: int | None = None,
        step: int | None = None,
        gap: int | None = None,
        late: int | None = None,
        keep: int = 0,
        emit: Emit = "close",
        changelog: str | None = None,
    ) -> Window[A, V]: ...
    @whole
    def window(  # noqa: PLR0913 - each is one choice, by its name
        self,
        name: str,
        *,
        value: type[Any],
        add: Callable[[Any, Any], Any] | None = None,
        merge: Callable[[Any, Any], Any] | None = None,
        init: Callable[[], Any] | None = None,
        meaning: str | None = None,
        size: int | None = None,
        step: int | None = None,
        gap: int | None = None,
        late: int | None = None,
        keep: int = 0,
        emit: Emit = "close",
        changelog: str | None = None,
    ) -> Window[Any, Any]:
        """Declare windows of event time, in a store of their own. All times are in ms.

        Args:
            name: of the store.
            value: the type of a window's value: int, float, str, bytes, list or dict.
            add: returns the next value from a window's value and one more; None: their sum.
            merge: makes one value of two, the older one first; sessions with ``add`` need it.
            init: returns the value of no record; None: ``value()``.
            meaning: stands for the code of these functions where the store has windows already.
            size: of each window; without ``step`` one begins where another ends.
            step: how far apart windows begin, which overlap then.
            gap: so long without a record ends a session.
            late: how much older than the newest record one may be; None: as the job has it, or 0.
            keep: how much longer a closed window can be read.
            emit: whether results are windows that close, or each update.
            changelog: as of ``store``.
        """
        self._keep_logged(name, str, value, changelog)
        serde = self._keys[f"stores.{name}.msg.serde"]
        if serde not in SERDES:
            rule = f"windows are in a store of the serde {', '.join(SERDES)}, not {serde}"
            raise ConfigError("job.window", name, rule, "give value=dict, and dicts")
        number("late of job.window", late or 0)
        number("keep of job.window", keep)
        spec = spec_of(
            name,
            value,
            add=add,
            merge=merge,
            init=init,
            meaning=meaning,
            size=size,
            step=step,
            gap=gap,
            lateness_ms=late,
            retention_ms=keep,
            emit=emit,
        )
        made: Window[Any, Any] = Window(spec, value, self._calls)
        self._functions.windows[name] = made
        return made

    def closed(self, window: Window[Any, Any]) -> Callable[[_Function], _Function]:
        """Decorate the function for windows that close, or change where emit="update".

        It takes key and value, or key, value and the WindowResult, or that alone.
        """
        return self._of_windows("job.closed", window)

    def late(self, window: Window[Any, Any]) -> Callable[[_Function], _Function]:
        """Decorate the function for records whose windows are all closed, or too far ahead.

        It takes key and value, or key, value and the ``Late`` record, or that alone.
        """
        return self._of_windows("job.late", window)

    def _of_windows(self, what: str, window: Window[Any, Any]) -> Callable[[_Function], _Function]:
        spec = getattr(window, "spec", None)
        if spec is None or self._functions.windows.get(spec.name) is not window:
            raise none_of_job(what, window, "window", self.name)
        kind = what.removeprefix("job.")

        def add(function: _Function) -> _Function:
            if kind in spec.handlers:
                rule = f"{window.name} has such a function already"
                raise ConfigError(what, window.name, rule, "remove one of the two")
            require_plain(what, function)
            spec.handlers[kind] = of_message(function, what)
            return function

        return add

    @whole
    def dead_letters(self, topic: str) -> None:
        """Skip records that a serde cannot read, and send them to ``topic``, with the reason."""
        stream = self._stream(_DEAD, topic, bytes, bytes)
        self._keys["task.drop.deserialization.errors"] = True
        self._keys[_DEAD_STREAM] = str(stream)

    def _keep_logged(self, name: str, key: object, value: object, changelog: str | None) -> None:
        self._keep("job.store", name, key, value)
        topic = f"{self.name}-{name}-changelog" if changelog is None else changelog
        self._keys[f"stores.{name}.changelog"] = f"{SYSTEM}.{topic}"

    def _keep(self, what: str, name: str, key: object, value: object) -> None:
        prefix = f"stores.{name}"
        if not name:
            raise ConfigError(what, name, "it is empty", "give the store a name")
        if f"{prefix}.factory" in self._keys:
            raise ConfigError(what, name, "there is such a store", "give another name")
        for part, of_type in (("key", key), ("msg", value)):
            self._keys[f"{prefix}.{part}.serde"] = self._serde(f"the store {name}", part, of_type)
        self._keys[f"{prefix}.factory"] = "rocksdb"

    def _stream(self, what: str, name: str, key: object, value: object) -> SystemStream:
        given: object = name
        if not isinstance(given, str) or not is_topic_name(given):
            rule = "a topic has letters, digits, '.', '_' and '-'"
            raise ConfigError(what, str(name), rule, "give the name of a topic, as in orders")
        for part, of_type in (("key", key), ("msg", value)):
            serde = self._serde(f"{what} {name}", part, of_type)
            found = self._keys.setdefault(f"{_of_stream(name)}.{part}.serde", serde)
            if found != serde:
                rule = f"it is declared with other types, of the serde {found}"
                remedy = "give the same types in both places"
                if what == _DEAD or self._keys.get(_DEAD_STREAM) == f"{SYSTEM}.{name}":
                    remedy = "dead letters are bytes: give them a topic of their own"
                raise ConfigError(what, name, rule, remedy)
        return SystemStream(SYSTEM, name)

    def _serde(self, what: str, part: str, of_type: object) -> str:
        """Return the name of the serde; a class or a schema gets an entry by its name."""
        is_key = part == "key"
        if isinstance(of_type, Schema):
            used_for = f"{what.rpartition(' ')[2]}-{'key' if is_key else 'value'}"
            return self._schema(what, of_type, used_for)
        what = f"{'key' if is_key else 'value'} of {what}"
        module = self._file.stem if self._file is not None else "__main__"  # in a notebook
        serde = serde_of(what, of_type, module, is_key=is_key)
        if ":" not in serde:
            return serde
        return self._entry(what, serde.partition(":")[2], serde)

    def _schema(self, what: str, schema: Schema[Any], used_for: str) -> str:
        for name, known in self._schemas.items():
            if known == schema:
                return name
        name = name_of(schema, used_for)
        if name in self._schemas:
            rule = f"it is {schema!r}, and {self._schemas[name]!r} has the name {name} too"
            raise ConfigError(what, name, rule, "give one of the files another name")
        self._schemas[name] = schema
        self._entry(what, name, kind_of(schema))
        self._keys.update(entry_of(schema, name, self._folder))
        return name

    def _entry(self, what: str, name: str, serde: str) -> str:
        known = self._keys.setdefault(f"serializers.registry.{name}.class", serde)
        if known != serde:
            rule = f"it is {serde}, and {known} has that name too"
            raise ConfigError(what, name, rule, "give one of them another name")
        return name


def _of_stream(name: str) -> str:
    return f"systems.{SYSTEM}.streams.{name}.samza"


def number(what: str, given: object, *, least: int = 0) -> int:
    """Return the whole number ``given``; ConfigError where it is none, or below ``least``."""
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        rule = f"it must be a whole number, from {least} on"
        raise ConfigError(what, str(given), rule, f"write {least} or more")
    return given
