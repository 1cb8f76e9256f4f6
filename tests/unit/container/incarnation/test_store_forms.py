"""A container's serdes and what its stores hold: what it records, refuses, and gives its tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_jobs import LOGGED, job_of, store_keys
from stores_in_memory_log import CONFIG, Log, storage_of
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import ConfigError, WireError
from homeport.config.settings.serde_names import SchemaSerde
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation.start_up import require_forms
from homeport.container.serde.evolution.readable import StoreSerdes, claim_of, require_first
from homeport.container.serde.forms import form_of, shown
from homeport.container.serde.serdes import Serde
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.state_facts import StateFactManager, StoreForms

KEYS = {
    **LOGGED,
    **store_keys(msg_serde="rec", changelog="kafka.s"),
    **store_keys("scratch", msg_serde="rec"),
    "serializers.registry.rec.class": "avro",
}
SCHEMA = "serializers.registry.rec.schema"


def _job(schema: object, *, standby: bool = False) -> ContainerJob:
    """A container of a job whose values have the Avro schema, or its standby."""
    return job_of({**KEYS, SCHEMA: json.dumps(schema)}, "0-0" if standby else "0")


@pytest.mark.parametrize("standby", [False, True])
def test_the_first_container_writes_down_what_the_next_must_read(
    tmp_path: Path, *, standby: bool
) -> None:
    """Stores with a changelog alone: others live no longer than their container."""
    stream = InMemoryCoordinatorStream()
    storage = storage_of(tmp_path, Log(), CONFIG)
    require_forms(stream, _job("int", standby=standby), storage)
    stream.catch_up()
    assert [*StateFactManager(stream).forms()] == ["kafka.s"]
    ((kind, forms),) = storage.forms.items()
    assert (kind, forms[0], forms[1].split()[0]) == ("s", "bytes", "avro")
    assert storage.writers == {}
    length = len(stream.log)
    require_forms(stream, _job("int"), storage)
    assert len(stream.log) == length
    with pytest.raises(ConfigError, match="the values of store 's' were written by avro"):
        require_forms(stream, _job("string", standby=standby), storage)
    assert len(stream.log) == length


def _record(*fields: tuple[str, str], default: object = None) -> dict[str, object]:
    about = {} if default is None else {"default": default}
    parts = [{"name": name, "type": kind, **about} for name, kind in fields]
    return {"type": "record", "name": "R", "fields": parts}


A = _record(("n", "int"), default=0)
B = _record(("n", "int"), ("m", "int"), default=0)
C = _record(("n", "long"), ("m", "int"), default=0)


class _Host:
    """A host that starts containers of one job, which share a coordinator stream."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stream = InMemoryCoordinatorStream()

    def start(self, schema: object) -> Serde:
        """Start one; return the serde that its tasks' store has."""
        self.stream.catch_up()
        self.storage = storage_of(self.folder, Log(), CONFIG)
        job = _job(schema)
        require_forms(self.stream, job, self.storage, "node-7")
        self.stream.catch_up()
        store = next(s for s in job.stores if s.name == "s")
        return job.serdes(store, self.storage.writers.get("s", ()))[1]


def test_a_new_schema_is_recorded_before_it_writes_and_both_codes_read(tmp_path: Path) -> None:
    """An upgrade, and its way back: containers of both start in any order."""
    host = _Host(tmp_path)
    old = host.start(A)
    before = host.storage.forms
    first = old.to_bytes({"n": 5})
    new = host.start(B)
    assert host.storage.forms == before  # a store on the disk is no other one
    second = new.to_bytes({"n": 6, "m": 7})
    assert new.from_bytes(first) == {"n": 5, "m": 0}
    back = host.start(A)
    assert back.to_bytes({"n": 5}) == first
    assert back.from_bytes(second) == {"n": 6}
    length = len(host.stream.log)
    host.start(A)
    assert len(host.stream.log) == length
    again = host.start(B)
    assert again.from_bytes(second) == {"n": 6, "m": 7}
    assert len(host.storage.writers["s"]) == 2


def test_a_schema_that_the_other_code_does_not_read_needs_run_job(tmp_path: Path) -> None:
    """It may be a file that changed on this host alone; run-job writes down that it is meant."""
    host = _Host(tmp_path)
    host.start(A)
    length = len(host.stream.log)
    with pytest.raises(ConfigError, match="field n: long is no int"):
        host.start(C)
    assert len(host.stream.log) == length
    form = "avro " + _fingerprint(C)
    host.stream.write([StateFactManager.announcement("kafka.s", form)])
    new = host.start(C)
    assert new.from_bytes(_job(A).serdes(_job(A).stores[0])[1].to_bytes({"n": 5})) == {
        "n": 5,
        "m": 0,
    }
    with pytest.raises(ConfigError, match="field n: long is no int"):
        host.start(A)


def _fingerprint(schema: object) -> str:
    storage = storage_of(Path(), Log(), CONFIG)
    require_forms(InMemoryCoordinatorStream(), _job(schema), storage)
    return storage.forms["s"][1].split(" ")[1]


def test_a_release_without_marks_refuses_a_store_that_has_some(tmp_path: Path) -> None:
    """It compares the record of the first container, which has it from then on."""
    host = _Host(tmp_path)
    host.start(A)
    assert not _first(host.stream).startswith("evolved ")
    host.start(B)
    assert _first(host.stream).startswith("evolved avro ")
    assert StateFactManager(host.stream).forms()["kafka.s"].msg.startswith("avro ")


def _first(stream: InMemoryCoordinatorStream) -> str:
    record = stream.latest(MessageType.SET_STATE_FACT)["changelog kafka.s"]
    return record.value("msg") or ""


def test_a_damaged_record_of_a_schema_stops(tmp_path: Path) -> None:
    """Its values would be read by another one."""
    host = _Host(tmp_path)
    host.start(A)
    host.start(B)
    (key,) = (
        key for key in host.stream.latest(MessageType.SET_STATE_FACT) if key.startswith("schema ")
    )
    host.stream.write([CoordinatorStreamMessage(MessageType.SET_STATE_FACT, key, {"x": "y"})])
    with pytest.raises(WireError, match="the form of values is missing"):
        host.start(B)


def test_a_former_release_refuses_values_that_the_first_schema_does_not_read(
    tmp_path: Path,
) -> None:
    """It takes the others: an object of JSON may have more fields there too."""
    stream = InMemoryCoordinatorStream()
    keys = {**KEYS, "serializers.registry.rec.class": "json"}
    for schema, is_refused in (("a INT", False), ("a INT, b INT", False), ("a BIGINT", True)):
        form = shown(form_of(SchemaSerde("json", "rec", schema)))
        stream.write([StateFactManager.announcement("kafka.s", form)])
        stream.catch_up()
        storage = storage_of(tmp_path, Log(), CONFIG)
        require_forms(stream, job_of({**keys, SCHEMA: schema}), storage)
        stream.catch_up()
        assert _first(stream).startswith("evolved json ") == is_refused


def test_of_two_schemas_at_the_very_first_start_one_is_refused(tmp_path: Path) -> None:
    """No container overwrites what another has begun with, in whatever order they write.

    Each has read the stream while it was empty. A schema that reads the other's is refused too.
    """
    for other in (B, "string"):
        first, second, third = (InMemoryCoordinatorStream() for _ in range(3))
        second.log = third.log = first.log
        jobs = _job(A), _job(other), _job(A)
        claimed: list[StoreForms] = []
        for stream, job in ((first, jobs[0]), (second, jobs[1])):
            forms = claim_of(StoreSerdes("s", "bytes", job.stores[0].msg_serde).reading())
            claimed.append(StateFactManager(stream).claim({"kafka.s": forms})["kafka.s"])
        assert claimed[0] == claimed[1]
        rule = "the values of store 's' are avro .* in another container, which began the store at"
        length = len(first.log)
        with pytest.raises(ConfigError, match=rule):
            require_forms(second, jobs[1], storage_of(tmp_path, Log(), CONFIG))
        assert len(first.log) == length + 1  # its claim is taken back
        require_forms(first, jobs[0], storage_of(tmp_path, Log(), CONFIG))
        require_forms(third, jobs[2], storage_of(tmp_path, Log(), CONFIG))
        first.catch_up()
        facts = StateFactManager(first)
        assert shown(facts.forms()["kafka.s"].msg) == claimed[0].msg
        assert not [key for key in first.latest(MessageType.SET_STATE_FACT) if "begins " in key]


def test_a_store_that_was_begun_meanwhile_is_judged_as_any(tmp_path: Path) -> None:
    """The line has the field; another serde of keys has one of its own."""
    first, second = InMemoryCoordinatorStream(), InMemoryCoordinatorStream()
    second.log = first.log
    require_forms(first, _job(A), storage_of(tmp_path, Log(), CONFIG))
    with pytest.raises(ConfigError, match=r"were written by avro .*; field n: int is no string"):
        require_forms(second, _job(_record(("n", "string"))), storage_of(tmp_path, Log(), CONFIG))
    store = StoreSerdes("s", "bytes", "json")
    with pytest.raises(
        ConfigError, match=r"stores\.s\.key\.serde = 'bytes': the keys of store 's' are"
    ):
        require_first(store, StoreForms("long", "json"))


def _repartitioned(schema: object, **more: str) -> ContainerJob:
    own = {"task.repartition.by-n": "2", "task.repartition.by-n.key.serde": "rec", SCHEMA: ""}
    return job_of({**KEYS, **more, **own, SCHEMA: json.dumps(schema)})


def test_keys_of_a_repartition_keep_their_bytes_as_those_of_a_store_do(tmp_path: Path) -> None:
    """They choose the task that has the state of each; the schema of its values may change."""
    stream = InMemoryCoordinatorStream()
    storage = storage_of(tmp_path, Log(), CONFIG)
    same = {"stores.s.msg.serde": "string"}
    require_forms(stream, _repartitioned("int", **same), storage)
    assert storage.forms == {"s": ("bytes", "string")}
    stream.catch_up()
    require_forms(stream, _repartitioned("int", **same), storage)
    rule = (
        "serializers.registry.rec.schema = 'avro .*': the keys of repartition topic "
        "'__homeport_repartition_j_1_by-n' were written by avro .*, and keys keep their bytes; "
        "set the schema back, keep the new keys in another repartition and store"
    )
    with pytest.raises(ConfigError, match=rule):
        require_forms(stream, _repartitioned("string", **same), storage)
    own = {"task.repartition.by-n.key.serde": "long"}
    with pytest.raises(ConfigError, match=r"key\.serde = 'long': the keys of repartition topic"):
        require_forms(stream, job_of({**_repartitioned("int", **same).config, **own}), storage)


def test_without_state_no_task_has_any_key(tmp_path: Path) -> None:
    """Then nothing is written down."""
    stream = InMemoryCoordinatorStream()
    require_forms(
        stream,
        _repartitioned("int", **{"stores.s.changelog": ""}),
        storage_of(tmp_path, Log(), CONFIG),
    )
    stream.catch_up()
    assert StateFactManager(stream).forms() == {}
