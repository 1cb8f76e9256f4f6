"""The values of a store, rewritten in its changelog by a function of the job's own.

For each partition, the last value of each key up to the end that the partition had when the
conversion began is read, passed to the function, and appended in the new schema. Keys that have a
value behind that end are left out: it is a converted one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from msgspec import Struct

from homeport.cli.formatting import number
from homeport.cli.host.state_dump import shown_bytes
from homeport.config.config import INT_MAX
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError, in_one_line
from homeport.config.printable import printable
from homeport.config.secret_names import without_secrets
from homeport.config.settings.serde_names import AVRO, JSON, ConfiguredSerde, SchemaSerde
from homeport.config.settings.stores_section import StoreConfig
from homeport.config.system_stream import SystemStream
from homeport.container.callables import fault_of
from homeport.container.classes import load_serde
from homeport.container.progress.topic_rules import TopicRules
from homeport.container.progress.transaction_plan import Send
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.serde.class_serde import is_record_class
from homeport.container.serde.evolution.marked_avro import marked_avro
from homeport.container.serde.evolution.readable import (
    StoreSerdes,
    require_readable,
    require_same_keys,
    schema_in,
    writers_of,
)
from homeport.container.serde.forms import forms_of, kind_of, reading_of, shown
from homeport.container.serde.serdes import Serde
from homeport.container.storage.changelog_reader import ChangelogReader
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.state_conversion import Conversion, ConversionManager
from homeport.job_coordinator.metadata.state_facts import (
    Reading,
    StateFactManager,
    StoreForms,
    StoreSchemas,
)
from homeport.job_coordinator.metadata.state_reset import StateResetManager
from homeport.job_coordinator.model.wire_form import about
from homeport.job_coordinator.user_code import user_object

WITH, FROM, NONE_DELETES = "--with", "--from", "--none-deletes"
_SCRATCH_BYTES = 64 * 1024 * 1024
_RECORDS, _BYTES = 5_000, 8 << 20
"""Limits of one transaction; one record may exceed the second alone."""
_SHOWN = 80
_NO_LIMIT = TopicRules(INT_MAX)


class ShownConversion(Struct, frozen=True):
    """What a conversion has done, or would do.

    ``before``, ``after``: the schemas that the values had, and have then. ``deleted``: of those
    that are converted. ``is_done``: False of a dry run. ``is_admitted``: whether the new schema
    reads all values, which stay as they are.
    """

    store: str
    changelog: str
    before: tuple[str, ...]
    after: str
    converted: Annotated[int, about("values that the function got")]
    deleted: int
    earlier: Annotated[int, about("values that an earlier run converted")]
    is_done: bool
    is_admitted: bool = False

    def shown(self) -> ShownConversion:
        """Return it for a script."""
        return self

    def __str__(self) -> str:
        """For people."""
        if self.before == (self.after,):
            return f"store {self.store}: all values are {self.after}: nothing to convert"
        if self.is_admitted:
            how = "are" if self.is_done else "would be"
            return f"store {self.store}: values of {self.after} {how} admitted, the others stay"
        how = "converted" if self.is_done else "would be converted"
        line = (
            f"store {self.store}: {number(self.converted, 'value')} {how} from "
            f"{' and '.join(self.before)} to {self.after}, {self.deleted} of them deleted"
        )
        return f"{line}, {self.earlier} before" if self.earlier else line


@dataclass(frozen=True)
class StoreChange:
    """What becomes of a store's values: of ``recorded``, by ``store``'s serdes in the job's file.

    ``former``: the entry of ``--from``, which reads them; None: the recorded schemas do.
    """

    store: StoreConfig
    changelog: SystemStream
    recorded: StoreSchemas
    former: ConfiguredSerde | None = None

    @property
    def serdes(self) -> StoreSerdes:
        """Return the new serdes."""
        return StoreSerdes(self.store.name, self.store.key_serde, self.store.msg_serde)

    def reading(self) -> Reading:
        """Return how the new code reads; ConfigError: keys would have other bytes."""
        found = self.serdes.reading()
        require_same_keys(self.serdes, found, self.recorded)
        return found

    def forms(self) -> StoreForms:
        """Return the forms that the store's first container would write down."""
        return forms_of((self.store.key_serde, self.store.msg_serde))

    def before(self) -> tuple[str, ...]:
        """Return the forms of the values, in brief."""
        return tuple(dict.fromkeys(shown(form) for form in writers_of(self.recorded)))

    def is_needed(self) -> bool:
        """Return whether there are values of another schema than the new one."""
        return self.before() != (shown(self.reading().msg),)

    def outcome(
        self, *counts: int, is_done: bool = True, is_admitted: bool = False
    ) -> ShownConversion:
        """Return what was done, or would be; ``counts``: converted, deleted, and earlier."""
        converted, deleted, earlier = counts or (0, 0, 0)
        return ShownConversion(
            self.store.name,
            str(self.changelog),
            self.before(),
            shown(self.reading().msg),
            converted,
            deleted,
            earlier,
            is_done,
            is_admitted,
        )

    def reader(self) -> Callable[[bytes], Any]:
        """Return the function that decodes a value that any of the recorded schemas wrote.

        Each is read as the code read it that ran last. ConfigError: what is recorded is too little.
        """
        key = keys.STORE_MSG_SERDE.named(self.store.name)
        now = self.recorded.reading or Reading(*self.recorded.forms)
        entry = self.former or self._recorded_entry(now)
        if self.former is not None:
            found = reading_of((key, self.recorded.forms.key), (key, entry)).msg
            if shown(found) != shown(now.msg):
                rule = f"it is {shown(found)}, and the values were last read as {shown(now.msg)}"
                raise ConfigError(FROM, str(entry), rule, "name the former serde of the values")
        return self._serde_of(key, entry).from_bytes

    def _serde_of(self, key: str, entry: ConfiguredSerde) -> Serde:
        found = load_serde(key, entry)
        writers = writers_of(self.recorded)
        if isinstance(entry, SchemaSerde) and entry.kind == AVRO and len(writers) > 1:
            return marked_avro(entry, found, writers)
        return found

    def _recorded_entry(self, now: Reading) -> ConfiguredSerde:
        """Return the serde by what is recorded alone; objects of JSON come as they are."""
        kind, schema = kind_of(now.msg), schema_in(now.msg)
        if kind == AVRO and schema is not None:
            return SchemaSerde(AVRO, kind, now.reader or json.dumps(schema))
        if " " in now.msg and (kind == JSON or ":" in kind):
            return JSON
        if ":" in kind and is_record_class(user_object(FROM, kind)):
            return JSON  # whose fields were not recorded, from before
        if now.msg == kind and not kind.endswith("-of-a-registry"):
            return kind
        raise ConfigError(
            FROM,
            None,
            f"the values are {shown(now.msg)}, which the coordinator stream alone does not read",
            "keep the former serde in serializers.registry under another name, with its schema's "
            "file, and name it",
        )


class Function:
    """The function of the job's own that makes new values of former ones.

    ``none_deletes``: whether it may return None, which deletes the key.
    """

    def __init__(self, name: str, change: StoreChange, *, none_deletes: bool) -> None:
        """Load it from the job's code; ConfigError: it is no function of one value."""
        self._name, self._none_deletes = name, none_deletes
        self._call: Callable[[Any], Any] = user_object(WITH, name)
        fault = fault_of(self._call, name.rpartition(":")[2], ["value"], no_yield="return it")
        if fault is not None:
            rule = "it must name a function that takes a value and returns another one"
            raise ConfigError(WITH, name, rule, f"this is {fault.what}: {fault.remedy}")
        self._store = change.store.name
        self._from_bytes = change.reader()
        key = keys.STORE_MSG_SERDE.named(self._store)
        self._to_bytes = load_serde(key, change.store.msg_serde).to_bytes

    def of(self, partition: int, key: bytes, data: bytes, rules: TopicRules) -> bytes | None:
        """Return the new value; None: the key goes. HomeportError: it cannot be made.

        ``rules``: of the changelog, which must take it.
        """
        step = "it is not read by the former schema"
        try:
            value = self._from_bytes(data)
            step = f"{self._name} failed"
            returned = self._call(value)
            step = f"what {self._name} returned is not of the new schema"
            made = None if returned is None else self._to_bytes(returned)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - user code may raise anything
            raise self._failed(partition, key, f"{step}: {in_one_line(error)}") from None
        if made is None and not self._none_deletes:
            how = f"return the new value, or give {NONE_DELETES}, with which None deletes the key"
            raise self._failed(partition, key, f"{self._name} returned None: {how}")
        why = rules.refusal(Send("", key, made, partition), 0)
        if why is not None:
            raise self._failed(partition, key, f"what {self._name} returned is too large: {why}")
        return made

    def _failed(self, partition: int, key: bytes, why: str) -> HomeportError:
        text = shown_bytes(key)
        shown_key = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        line = f"store {self._store!r}, changelog partition {partition}, key {shown_key!r}: {why}"
        return HomeportError(printable(without_secrets(line)))


class Writer(Protocol):
    """Writes to the changelog, as the only one."""

    def write(self, partition: int, entries: Mapping[bytes, bytes | None]) -> None:
        """Append all of ``entries`` to the partition, or nothing; None deletes."""


class Scratch(Protocol):
    """Holds the values of one partition."""

    def write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        """Apply all of ``entries``; None deletes."""

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs."""


@contextmanager
def on_disk() -> Iterator[Scratch]:
    """Yield a store below $TMPDIR, for a block."""
    with tempfile.TemporaryDirectory(prefix="homeport-") as folder:
        store = RocksDbStore(Path(folder), RocksDbMemory(_SCRATCH_BYTES, 1))
        try:
            yield store
        finally:
            store.close()


@dataclass
class Rewriting:
    """The values of one changelog on their way. ``ends`` {partition: as of the beginning}.

    ``rules``: what the changelog takes.
    """

    function: Function
    changelog: SystemStream
    ends: Mapping[int, int]
    reader: ChangelogReader
    report: Callable[[str], None]
    scratch: Callable[[], AbstractContextManager[Scratch]] = on_disk
    rules: TopicRules = _NO_LIMIT
    converted: int = 0
    deleted: int = 0
    earlier: int = 0

    def run(self, writer: Writer | None) -> None:
        """Rewrite what is not rewritten yet; without a writer, only see that all can be."""
        self.converted = self.deleted = self.earlier = 0
        places = [(self.changelog, partition) for partition in sorted(self.ends)]
        for (_, partition), found in zip(places, self.reader.ranges(places), strict=True):
            if found.oldest == found.head:
                continue
            with self.scratch() as left:
                self._read(left, partition, found.oldest, found.head)
                for entries in _portions(self._made(partition, left)):
                    if writer is not None:
                        writer.write(partition, entries)
                    how = "tried" if writer is None else "converted"
                    self.report(
                        f"partition {partition} of {len(places)}: "
                        f"{number(self.converted, 'value')} {how} so far"
                    )

    def _read(self, left: Scratch, partition: int, oldest: int, head: int) -> None:
        """Fill ``left`` with what is not converted yet."""
        end = max(oldest, self.ends[partition])
        for chunk in self.reader.read(self.changelog, partition, oldest, end):
            left.write(chunk.entries, None)
        for chunk in self.reader.read(self.changelog, partition, end, head):
            left.write(dict.fromkeys(chunk.entries), None)
            self.earlier += len(chunk.entries)

    def _made(self, partition: int, left: Scratch) -> Iterator[tuple[bytes, bytes | None]]:
        for key, data in left.scan():
            made = self.function.of(partition, key, data, self.rules)
            self.converted += 1
            self.deleted += made is None
            yield key, made


def _portions(pairs: Iterator[tuple[bytes, bytes | None]]) -> Iterator[dict[bytes, bytes | None]]:
    """Yield the pairs by transaction, each within the limits."""
    part: dict[bytes, bytes | None] = {}
    size = 0
    for key, value in pairs:
        part[key] = value
        size += len(key) + len(value or b"")
        if len(part) == _RECORDS or size >= _BYTES:
            yield part
            part, size = {}, 0
    if part:
        yield part


class Site(Protocol):
    """What a conversion reaches of the job."""

    def ends(self) -> dict[int, int]:
        """Return {partition of the changelog: its end now}."""

    def rules(self) -> TopicRules:
        """Return the limits of a record of the changelog."""

    def owned(self) -> AbstractContextManager[tuple[CoordinatorStream, Writer]]:
        """Let nothing of the job start or commit from now on, and no earlier conversion.

        Yields the stream, read to its head, and the changelog, for a block.
        """


def convert(
    change: StoreChange,
    stream: CoordinatorStream,
    site: Site,
    rewriting: Rewriting,
    *,
    dry_run: bool,
) -> ShownConversion:
    """Rewrite the values, or finish what was begun; return what was done.

    Order: each step is safe to be done again, as a command that is killed leaves the rest to the
    next one. (1) All values are converted without being written: what the function raises for
    one of them is raised before anything is changed. (2) The stream records that a conversion has
    begun, and nothing starts; nothing else can commit. (3) It records where the partitions end.
    (4) New values are appended behind these ends. (5) One transaction records what the values
    are now, and that the job may start.

    ``stream``: read to its head. ConfigError: another conversion, or a reset, is unfinished; or
    another command has converted the values since this one began.
    """
    wanted = change.reading()
    found = _under_way(stream, change, shown(wanted.msg))
    rewriting.ends = site.ends() if found is None else found.ends
    rewriting.rules = site.rules()
    if found is None or dry_run:
        rewriting.run(None)
    if not dry_run:
        with site.owned() as (own, writer):
            manager = ConversionManager(own)
            # What another command has begun, which this one has waited for, or has fenced.
            found = _under_way(own, change, shown(wanted.msg))
            _require_unchanged(own, change)
            if found is None:
                found = Conversion(str(change.changelog), shown(wanted.msg), site.ends())
                manager.write(found)
                own.catch_up()
            rewriting.ends = found.ends
            rewriting.run(writer)
            manager.finish(found, change.forms(), wanted)
    counts = rewriting.converted, rewriting.deleted, rewriting.earlier
    return change.outcome(*counts, is_done=not dry_run)


def _require_unchanged(own: CoordinatorStream, change: StoreChange) -> None:
    """Require that values are still of the schemas that the function takes; else ConfigError."""
    changelog = str(change.changelog)
    if StateFactManager(own).schemas().get(changelog) == change.recorded:
        return
    manager = ConversionManager(own)
    if manager.read() is None:
        manager.give_up()
    rule = f"another command has changed what is known of {changelog} since this one began"
    raise ConfigError("STORE", change.store.name, rule, "run it again")


def admit(change: StoreChange, stream: CoordinatorStream, *, dry_run: bool) -> ShownConversion:
    """Admit values of the new schema, which reads all others; nothing is rewritten.

    The code that ran last need not read them: it is refused from the first of them on.

    ConfigError: there are values that it does not read, or a conversion is unfinished.
    """
    StateResetManager(stream).require_finished()
    form = shown(require_readable(change.serdes, change.recorded).msg)
    if not dry_run:
        stream.write([StateFactManager.announcement(str(change.changelog), form)])
    return change.outcome(is_done=not dry_run, is_admitted=True)


def _under_way(stream: CoordinatorStream, change: StoreChange, form: str) -> Conversion | None:
    """Return the conversion that was begun with these values; None: none has written any."""
    manager = ConversionManager(stream)
    if not manager.is_under_way():
        StateResetManager(stream).require_finished()
        return None
    found = manager.read()
    if found is None or (found.changelog, found.form) == (str(change.changelog), form):
        return found
    rule = f"values of {found.changelog} are being converted to {found.form}, and not to {form}"
    raise ConfigError(
        "STORE", change.store.name, rule, "finish that first, with the code that it began with"
    )
