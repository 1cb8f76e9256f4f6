"""A store's values are rewritten: killed at each step, each is converted once; and what is refused.

The coordinator stream and the changelog are in memory; ``KILLS`` counts what they are given.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, make_dataclass
from types import ModuleType
from typing import Any

import pytest
from msgspec import structs
from small_jobs import KEYS, LOGGED, store_keys
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.host import state_convert
from homeport.cli.host.state_convert import Function, Rewriting, StoreChange, Writer, admit, convert
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError, StoreError
from homeport.config.settings.serde_names import SchemaSerde, serde_name
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.system_stream import SystemStream
from homeport.container.classes import load_serde
from homeport.container.progress.restore import ChangelogTopic, OffsetRange
from homeport.container.progress.topic_rules import TopicRules
from homeport.container.serde.evolution.marked_avro import marked_avro
from homeport.container.serde.evolution.readable import (
    StoreSerdes,
    require_admitted,
    require_readable,
)
from homeport.container.serde.forms import form_of, forms_of
from homeport.container.storage.changelog_reader import Chunk
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.metadata.state_conversion import ConversionManager
from homeport.job_coordinator.metadata.state_facts import StateFactManager, StoreForms
from homeport.job_coordinator.metadata.state_reset import (
    ResetPhase,
    StateReset,
    StateResetManager,
    state_removed,
)

LOG = SystemStream("kafka", "log")
SCHEMA = "serializers.registry.rec.schema"
BASE = {**LOGGED, "serializers.registry.rec.class": "avro"}
Records = dict[int, list[tuple[bytes, bytes | None]]]


def _record(*fields: tuple[str, str], default: object = None) -> dict[str, Any]:
    about = {} if default is None else {"default": default}
    parts = [{"name": name, "type": kind, **about} for name, kind in fields]
    return {"type": "record", "name": "R", "fields": parts}


A = _record(("n", "int"))
B = _record(("n", "int"), ("m", "int"), default=7)
C = _record(("n", "string"))


class KilledError(BaseException):
    """The process is gone."""


@dataclass
class Kafka:
    """Stream and changelog; ``left``: how many writes it takes before the process is killed."""

    records: Records
    stream: InMemoryCoordinatorStream = field(default_factory=InMemoryCoordinatorStream)
    left: int = 1_000_000
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    """What other commands do while this one waits to own the job."""

    def written(self) -> None:
        """Note a write, and kill its process before it if its time has come."""
        if not self.left:
            raise KilledError
        self.left -= 1

    # As a ChangelogReader.

    def topics(self, changelogs: Sequence[SystemStream]) -> dict[SystemStream, ChangelogTopic]:
        """Return nothing: it is not asked."""
        raise AssertionError(changelogs)

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[OffsetRange]:
        """Return where each partition ends."""
        return [OffsetRange(0, len(self.records[partition])) for _, partition in changelogs]

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        """Yield two records a chunk."""
        assert stream == LOG
        for at in range(start, head, 2):
            part = self.records[partition][at : min(at + 2, head)]
            yield Chunk(dict(part), len(part), at + len(part) - 1)

    # As a Site, a Writer, and a stream.

    def ends(self) -> dict[int, int]:
        """Return where each partition ends."""
        return {partition: len(records) for partition, records in self.records.items()}

    def rules(self) -> TopicRules:
        """Return those of a small topic."""
        return TopicRules(100)

    @contextmanager
    def owned(self) -> Iterator[tuple[CoordinatorStream, Writer]]:
        """Begin, as the product does."""
        while self.meanwhile:
            self.meanwhile.pop()()
        self.stream.catch_up()
        self.written()
        StateResetManager(self.stream).write(ConversionManager(self.stream).begun())
        self.stream.catch_up()
        yield _Killing(self), self

    def write(self, partition: int, entries: Mapping[bytes, bytes | None]) -> None:
        """Append them, if nothing can start."""
        self.written()
        assert ConversionManager(self.stream).is_under_way()
        self.records[partition].extend(entries.items())


class _Killing(InMemoryCoordinatorStream):
    """Writes of it are counted."""

    def __init__(self, kafka: Kafka) -> None:
        super().__init__(log=kafka.stream.log)
        self._kafka = kafka
        self.catch_up()

    def write(self, messages: Any) -> None:  # noqa: ANN401 - as the product's
        """Write all, or be killed."""
        self._kafka.written()
        super().write(messages)


def _config(schema: object, **more: str) -> Config:
    keys = {**BASE, **store_keys(msg_serde="rec", changelog="kafka.log"), SCHEMA: _text(schema)}
    return Config({**keys, **more})


def _text(schema: object) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


def _change(kafka: Kafka, config: Config, former: str | None = None) -> StoreChange:
    kafka.stream.catch_up()
    store = StorageConfig.of(config).stores["s"]
    recorded = StateFactManager(kafka.stream).schemas()[str(LOG)]
    entry = None if former is None else serde_name(config, "--from", former)
    return StoreChange(store, LOG, recorded, entry)


def _has_run(kafka: Kafka, config: Config) -> None:
    """A container of this code has written down how it reads and writes."""
    kafka.stream.catch_up()
    store = StorageConfig.of(config).stores["s"]
    serdes = StoreSerdes("s", store.key_serde, store.msg_serde)
    facts, recorded = StateFactManager(kafka.stream), None
    recorded = facts.schemas().get(str(LOG))
    reading = require_readable(serdes, recorded)
    if recorded is None:
        forms = forms_of((store.key_serde, store.msg_serde))
        kafka.stream.write(facts.first_messages(str(LOG), forms, reading))
    else:
        kafka.stream.write(
            [
                *facts.writer_messages(str(LOG), reading.msg, recorded.forms, is_new=True),
                facts.reading_message(str(LOG), reading),
            ]
        )
    kafka.stream.catch_up()


def _serde(schema: object) -> SchemaSerde:
    return SchemaSerde("avro", "rec", json.dumps(schema))


def _bytes(schema: object, value: object) -> bytes:
    return load_serde("k", _serde(schema)).to_bytes(value)


def _filled() -> Kafka:
    """A store with values of A, and of B: 5 keys in two partitions, one of them deleted."""
    kafka = Kafka({0: [], 1: [], 2: []})
    _has_run(kafka, _config(A))
    first = [(b"k%d" % n, _bytes(A, {"n": n})) for n in range(5)]
    kafka.records[0] += [*first[:3], (b"k0", _bytes(A, {"n": 10})), (b"k1", None)]
    _has_run(kafka, _config(B))
    by_b = marked_avro(_serde(B), load_serde("k", _serde(B)), [form_of(_serde(s)) for s in (A, B)])
    kafka.records[1] += [*first[3:], (b"k4", by_b.to_bytes({"n": 4, "m": 1}))]
    return kafka


class InMemory(dict[bytes, bytes]):
    """The values of a partition."""

    def write(self, entries: Mapping[bytes, bytes | None], _: int | None) -> None:
        """Apply all."""
        for key, value in entries.items():
            self.pop(key, None)
            if value is not None:
                self[key] = value

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all."""
        yield from sorted(self.items())


CALLS: list[Any] = []


@pytest.fixture(autouse=True)
def code(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The job's own code; each transaction has one value."""
    module = ModuleType("own_conversion")

    def to_c(value: dict[str, int]) -> dict[str, str] | None:
        CALLS.append(value)
        return None if value["n"] == 2 else {"n": f"{value['n']}:{value['m']}"}

    def fails(value: dict[str, int]) -> dict[str, str]:
        if value["n"] == 3:
            raise ValueError("no 3, please")
        return {"n": "x"}

    vars(module).update(to_c=to_c, fails=fails, wrong=lambda value: value, same=lambda v: v)
    vars(module).update(forgets=lambda value: None if value["n"] == 4 else {"n": "x"})
    vars(module).update(big=lambda _: {"n": "x" * 100}, leaves=lambda _: sys.exit(0))
    vars(module).update(no_function=3, of_two=lambda a, b: (a, b), upper=str.upper)
    monkeypatch.setitem(sys.modules, "own_conversion", module)
    monkeypatch.setattr(state_convert, "_RECORDS", 1)
    CALLS.clear()
    return module


def _convert(
    kafka: Kafka,
    config: Config,
    name: str = "to_c",
    former: str | None = None,
    *,
    dry_run: bool = False,
) -> state_convert.ShownConversion:
    change = _change(kafka, config, former)
    function = Function(f"own_conversion:{name}", change, none_deletes=name == "to_c")
    lines: list[str] = []
    rewriting = Rewriting(function, LOG, {}, kafka, lines.append, lambda: nullcontext(InMemory()))
    return convert(change, kafka.stream, kafka, rewriting, dry_run=dry_run)


def _held(kafka: Kafka, schema: object) -> dict[bytes, object]:
    """What a store is that is restored now, by code of the schema."""
    last = {key: value for part in kafka.records.values() for key, value in part}
    from_bytes = load_serde("k", _serde(schema)).from_bytes
    return {key: from_bytes(value) for key, value in last.items() if value is not None}


AFTER = {b"k0": {"n": "10:7"}, b"k3": {"n": "3:7"}, b"k4": {"n": "4:1"}}


def _require_whole(kafka: Kafka) -> None:
    """The values are those of C, once; the next start reads them, and no former code does."""
    kafka.stream.catch_up()
    assert _held(kafka, C) == AFTER
    StateResetManager(kafka.stream).require_finished()
    recorded = StateFactManager(kafka.stream).schemas()[str(LOG)]
    assert (recorded.forms, recorded.later) == (StoreForms("bytes", form_of(_serde(C))), ())
    require_readable(StoreSerdes("s", "bytes", _serde(C)), recorded)
    with pytest.raises(ConfigError, match="were written by avro"):
        require_readable(StoreSerdes("s", "bytes", _serde(B)), recorded)


def test_values_of_two_schemas_become_those_of_a_third() -> None:
    """Each as the last code read it; a key goes; nothing is done twice, by the command's word."""
    kafka, before = _filled(), len(_filled().stream.log)
    records = {p: list(r) for p, r in kafka.records.items()}
    shown_first = _convert(kafka, _config(C), dry_run=True)
    assert (len(kafka.stream.log), kafka.records) == (before, records)
    done = _convert(kafka, _config(C))
    assert structs.replace(shown_first, is_done=True) == done
    assert (done.converted, done.deleted, done.earlier) == (4, 1, 0)
    assert "4 values converted from avro " in str(done)
    _require_whole(kafka)
    assert not _change(kafka, _config(C)).is_needed()
    assert str(_change(kafka, _config(C)).outcome()).endswith(": nothing to convert")


def killed_everywhere(until_whole: Callable[[Kafka], None]) -> None:
    """Kill the command before each of its writes, and the next one too, until one ends."""
    for first in range(8):
        for second in (0, 2):
            kafka = _filled()
            for left in (first, second, 1_000):
                kafka.left = left
                try:
                    _convert(kafka, _config(C))
                    break
                except KilledError:
                    continue
            until_whole(kafka)


def test_no_value_is_converted_twice_wherever_the_command_is_killed() -> None:
    """Nothing starts meanwhile, and the last one has it whole; values came once to the changelog.

    What the function returns may be no value that it takes: a second time would fail.
    """
    killed_everywhere(_require_once)


def _require_once(kafka: Kafka) -> None:
    _require_whole(kafka)
    assert [len(kafka.records[partition]) for partition in range(3)] == [5 + 2, 3 + 2, 0]


def _no_ends(patch: pytest.MonkeyPatch) -> None:
    """The stream does not say where partitions end: what is new is taken for old."""
    patch.setattr(ConversionManager, "write", lambda *_: None)


def _ends_are_taken_again(patch: pytest.MonkeyPatch) -> None:
    """A second command takes the ends as they are then."""
    patch.setattr(state_convert, "_under_way", lambda *_: None)


def _facts_come_first(patch: pytest.MonkeyPatch) -> None:
    """The stream has the record that all is done, and then it is."""
    run, late = Rewriting.run, list[Callable[[], None]]()

    def later(self: Rewriting, writer: Writer | None) -> None:
        if writer is None:
            run(self, writer)
        else:
            late.append(lambda: run(self, writer))

    finish = ConversionManager.finish

    def first(*arguments: Any) -> None:  # noqa: ANN401 - as the product's
        finish(*arguments)
        late.pop()()

    patch.setattr(Rewriting, "run", later)
    patch.setattr(ConversionManager, "finish", first)


def _it_starts_in_between(patch: pytest.MonkeyPatch) -> None:
    """The stream does not say that a conversion has begun."""
    patch.setattr(ConversionManager, "begun", lambda _: StateReset(1, ResetPhase.FINISHED))


@pytest.mark.parametrize(
    "mutant", [_no_ends, _ends_are_taken_again, _facts_come_first, _it_starts_in_between]
)
def test_a_rule_that_is_taken_out_is_missed(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kill then leaves a store with a value converted twice, or one that no code reads."""
    mutant(monkeypatch)
    with pytest.raises((AssertionError, HomeportError)):
        killed_everywhere(_require_once)


def test_a_value_that_cannot_be_converted_changes_nothing() -> None:
    """One line has store, partition, key and reason; so with a value that the schema refuses."""
    kafka = _filled()
    before = len(kafka.stream.log)
    line = r"^store 's', changelog partition 1, key 'k3': own_conversion:fails failed: .*no 3, pl"
    with pytest.raises(HomeportError, match=line):
        _convert(kafka, _config(C), "fails")
    line = "partition 0, key 'k0': what own_conversion:wrong returned is not of the new schema: "
    with pytest.raises(HomeportError, match=line):
        _convert(kafka, _config(C), "wrong")
    of_big = "what own_conversion:big returned is too large: a record of .* the limit of 100 bytes"
    of_none = "partition 1, key 'k4': own_conversion:forgets returned None: return the new"
    of_exit = "own_conversion:leaves failed: SystemExit"
    for name, line in (("big", of_big), ("leaves", of_exit), ("forgets", of_none)):
        with pytest.raises(HomeportError, match=line):
            _convert(kafka, _config(C), name)
    kafka.records[2].append((b"k" * 100, b"\xff" * 20))
    with pytest.raises(HomeportError, match=r"key 'k{1,80}\.\.\.': it is not read by the former"):
        _convert(kafka, _config(C))
    assert (len(kafka.stream.log), kafka.records[0]) == (before, _filled().records[0])


def test_an_earlier_reset_stays_known() -> None:
    """A later start writes it into the history."""
    kafka = _filled()
    StateResetManager(kafka.stream).write(StateReset(3, ResetPhase.FINISHED))
    kafka.left = 3
    with pytest.raises(KilledError):
        _convert(kafka, _config(C))
    kafka.stream.catch_up()
    with pytest.raises(ConfigError, match="finish it by homeport state convert"):
        StateResetManager(kafka.stream).require_finished()
    kafka.left = 1_000
    _convert(kafka, _config(C))
    kafka.stream.catch_up()
    assert StateResetManager(kafka.stream).read() == StateReset(3, ResetPhase.FINISHED)


def test_a_command_that_another_overtakes_converts_no_value_twice() -> None:
    """It was killed at a write, or has ended, while this one waited: this one looks again."""
    for left in range(8):
        kafka = _filled()

        def other(kafka: Kafka = kafka, left: int = left) -> None:
            kafka.left = left
            with suppress(KilledError):
                _convert(kafka, _config(C))
            kafka.left = 1_000

        kafka.meanwhile.append(other)
        has_ended = pytest.raises(ConfigError, match="since this one began; run it")
        with has_ended if left == 7 else nullcontext():
            _convert(kafka, _config(C))
        _require_once(kafka)


@pytest.mark.parametrize("phase", [ResetPhase.BEGUN, ResetPhase.DELETING])
def test_what_began_meanwhile_and_is_unfinished_stays_known(phase: ResetPhase) -> None:
    """A reset or a deletion that was cut off while this command waited."""
    kafka = _filled()
    other = StateReset(4, phase)
    kafka.meanwhile.append(lambda: StateResetManager(kafka.stream).write(other))
    with pytest.raises(ConfigError, match="was not finished"):
        _convert(kafka, _config(C))
    kafka.stream.catch_up()
    assert StateResetManager(kafka.stream).read() == other


def test_a_reset_that_ends_meanwhile_leaves_nothing_to_convert() -> None:
    """The job may start afterwards, on the state of its own."""
    kafka = _filled()

    def reset() -> None:
        kafka.stream.write(state_removed(kafka.stream))
        StateResetManager(kafka.stream).write(StateReset(4, ResetPhase.FINISHED))

    kafka.meanwhile.append(reset)
    with pytest.raises(ConfigError, match="since this one began; run it again"):
        _convert(kafka, _config(C))
    kafka.stream.catch_up()
    assert StateResetManager(kafka.stream).read() == StateReset(4, ResetPhase.FINISHED)


def test_what_was_begun_is_finished_with_the_code_that_it_began_with() -> None:
    """Another schema is refused; so is a conversion while a reset is unfinished."""
    kafka = _filled()
    kafka.left = 3
    with pytest.raises(KilledError):
        _convert(kafka, _config(C))
    kafka.left = 1_000
    rule = "values of kafka.log are being converted to avro .*, and not to avro .*finish that first"
    with pytest.raises(ConfigError, match=rule):
        _convert(kafka, _config(_record(("n", "bytes"))))
    rest = _convert(kafka, _config(C), dry_run=True)
    assert (rest.converted, rest.earlier, rest.is_done) == (3, 1, False)
    assert str(rest).endswith("deleted, 1 before")
    StateResetManager(kafka.stream).write(StateReset(4, ResetPhase.BEGUN))
    kafka.stream.catch_up()
    with pytest.raises(ConfigError, match="finish it by run-job --reset-state"):
        _convert(kafka, _config(C))


def test_a_schema_that_reads_all_values_is_admitted_and_they_stay() -> None:
    """A container has it then, though the former code does not read what it writes."""
    wide = _record(("n", "long"), ("m", "long"), default=7)
    kafka = _filled()
    serdes = StoreSerdes("s", "bytes", _serde(wide))
    rule = "the code that runs, .* off YARN by homeport state convert"
    with pytest.raises(ConfigError, match=rule):
        require_admitted(serdes, StateFactManager(kafka.stream).schemas()[str(LOG)])
    length = len(kafka.stream.log)
    would = admit(_change(kafka, _config(wide)), kafka.stream, dry_run=True)
    assert (str(would).endswith(" would be admitted, the others stay"), would.is_done) == (
        True,
        False,
    )
    assert len(kafka.stream.log) == length
    done = admit(_change(kafka, _config(wide)), kafka.stream, dry_run=False)
    assert (str(done).endswith(" are admitted, the others stay"), done.is_admitted) == (True, True)
    kafka.stream.catch_up()
    require_admitted(serdes, StateFactManager(kafka.stream).schemas()[str(LOG)])
    with pytest.raises(ConfigError, match="rewrite the values by homeport state convert"):
        admit(_change(kafka, _config(C)), kafka.stream, dry_run=False)


def test_keys_are_not_converted() -> None:
    """Another serde of keys is refused before anything is read."""
    config = _config(C, **{"stores.s.key.serde": "string"})
    with pytest.raises(ConfigError, match="the keys of store 's' were written by bytes, and keys"):
        _convert(_filled(), config)


def test_a_function_that_is_none_is_refused() -> None:
    """By its name, in one line."""
    whats = {"no_function": "which cannot be called", "of_two": "not to be called with"}
    for name, what in (whats | {"absent": "has no 'absent'"}).items():
        with pytest.raises(ConfigError, match=f"--with = 'own_conversion:{name}': .*{what}"):
            _convert(_filled(), _config(C), name)


def _json_config(schema: str, **more: str) -> Config:
    return Config({**_config(schema, **more), "serializers.registry.rec.class": "json"})


def test_objects_of_json_come_as_they_are(code: ModuleType) -> None:
    """With a schema, or with a class that the job has by its name alone."""
    kafka = Kafka({0: [(b"a", b'{"n":1}')]})
    _has_run(kafka, _json_config("n INT"))
    vars(code)["text"] = lambda value: {"n": str(value["n"])}
    done = _convert(kafka, _json_config("n STRING"), "text")
    assert (done.before[0].split()[0], kafka.records[0][-1]) == ("json", (b"a", b'{"n":"1"}'))
    for of in ("fields", "name"):
        kafka = Kafka({0: [(b"a", b'{"n":1}')]})
        vars(code)["Total"] = _class(n=int)
        config = Config({**BASE, **store_keys(msg_serde="own", changelog="kafka.log")})
        config = config.merged({"serializers.registry.own.class": "own_conversion:Total"})
        _has_run(kafka, config)
        if of == "name":
            forget(kafka)
        vars(code)["Total"] = _class(n=str)
        _convert(kafka, config, "text")
        assert kafka.records[0][-1] == (b"a", b'{"n":"1"}')
        assert not _change(kafka, config).is_needed()


def _class(**fields: type) -> type:
    made: type = make_dataclass("Total", fields.items())
    made.__module__ = "own_conversion"
    return made


def forget(kafka: Kafka) -> None:
    """Leave no more than the name of the class, as a job from before has it."""
    facts = kafka.stream.latest(MessageType.SET_STATE_FACT)
    gone = [key for key in facts if not key.startswith("changelog ")]
    kafka.stream.write([wire.tombstone(MessageType.SET_STATE_FACT, key) for key in gone])
    kafka.stream.catch_up()


def test_values_without_a_schema_get_one() -> None:
    """As text becomes a record."""
    kafka = Kafka({0: [(b"a", b"five")]})
    _has_run(kafka, Config({**KEYS, **store_keys(msg_serde="string", changelog="kafka.log")}))
    config = Config({**KEYS, **store_keys(msg_serde="json", changelog="kafka.log")})
    _convert(kafka, config, "upper")
    assert kafka.records[0][-1] == (b"a", b'"FIVE"')


def test_the_former_serde_is_named_where_what_is_recorded_does_not_read() -> None:
    """It must be the one that the values were read by."""
    kafka = Kafka({0: [(b"a", b"1")]})
    registry = {"serializers.registry.rec.url": "http://h:1"}
    kafka.stream.write(
        StateFactManager(kafka.stream).form_messages(
            {str(LOG): StoreForms("bytes", "protobuf 0011")}
        )
    )
    with pytest.raises(ConfigError, match="--from is missing: the values are protobuf 0011, which"):
        _convert(kafka, _config(C, **registry))
    old = {"serializers.registry.old.class": "avro", "serializers.registry.old.schema": _text(A)}
    with pytest.raises(ConfigError, match=r"--from = 'old': it is avro .*, and the values were"):
        _convert(kafka, _config(C, **old), former="old")
    kafka = _filled()
    config = _config(C, **{**old, "serializers.registry.old.schema": _text(B)})
    _convert(kafka, config, former="old")
    _require_whole(kafka)


def test_the_values_of_a_partition_are_on_the_disk_meanwhile() -> None:
    """They may be more than the memory holds."""
    with state_convert.on_disk() as scratch:
        scratch.write({b"a": b"1", b"b": b"2"}, None)
        scratch.write({b"a": None, b"c": None}, None)
        assert list(scratch.scan()) == [(b"b", b"2")]


def test_a_changelog_that_is_gone_is_no_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of the site comes out, and nothing has begun."""
    kafka = _filled()

    def gone() -> dict[int, int]:
        raise StoreError("the changelog is gone")

    monkeypatch.setattr(kafka, "ends", gone)
    with pytest.raises(StoreError, match="is gone"):
        _convert(kafka, _config(C))
