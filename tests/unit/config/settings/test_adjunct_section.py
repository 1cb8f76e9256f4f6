"""Adjunct stores: what a configuration may say of them, in the document's words and in Samza's."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from small_jobs import store_keys

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.adjunct_section import (
    AdjunctsConfig,
    AdjunctStore,
    VersionMarkers,
    adjunct_warnings,
    extractor_key,
    streams_of_tasks,
)
from homeport.config.settings.input_serdes import input_serdes
from homeport.config.settings.validation import validate
from homeport.config.system_stream import SystemStream

_INPUT = "stores.planes.adstore.input"
_SIDE = "stores.planes.side.inputs"
_JOB = {
    "job.name": "flights",
    "job.default.system": "kafka",
    "task.class": "plane.summary:Summary",
    "task.inputs": "kafka.flights,kafka.planes",
    "task.broadcast.inputs": "kafka.airlines#0",
    "systems.kafka.samza.factory": "kafka",
    "systems.kafka.consumer.bootstrap.servers": "localhost:9092",
    "stores.planes.factory": "rocksdb",
    "stores.planes.key.serde": "string",
    "stores.planes.msg.serde": "json",
}


def _all(more: Mapping[str, str]) -> AdjunctsConfig:
    return AdjunctsConfig.of(Config({**_JOB, **more}))


def _one(more: Mapping[str, str]) -> AdjunctStore:
    (store,) = _all(more).stores.values()
    return store


def _another(store: str, stream: str) -> dict[str, str]:
    prefix = f"stores.{store}."
    serdes = {f"{prefix}factory": "in-memory", f"{prefix}key.serde": "string"}
    return {**serdes, f"{prefix}msg.serde": "json", f"{prefix}adstore.input": stream}


def test_a_job_without_any_has_none() -> None:
    """A store with tasks of its own as writers is none."""
    assert _all({}) == AdjunctsConfig({})


def test_a_partitioned_store_with_all_its_defaults() -> None:
    """Validity is a day; there are no versions; the record's own key and value are stored."""
    assert _one({_INPUT: "kafka.planes"}) == AdjunctStore(
        name="planes",
        stream=SystemStream("kafka", "planes"),
        input_key=_INPUT,
        is_broadcast=False,
        is_bootstrap=False,
        is_kept=True,
        extractor=None,
        validity_ms=86_400_000,
        markers=None,
        minimum_share_percent=0,
        late_ms=86_400_000,
    )


@pytest.mark.parametrize("key", [_INPUT, _SIDE])
def test_a_stream_without_system_is_of_the_default_one(key: str) -> None:
    """As a changelog is."""
    store = _one({key: "planes"})
    assert (store.stream, store.input_key) == (SystemStream("kafka", "planes"), key)


_EXTRACTOR = "stores.planes.adstore.key.value.extractor.factory"
_PROCESSOR = "stores.planes.side.inputs.processor.factory"
_HEADER = "stores.planes.adstore.version.marker.header"
_KEY = "stores.planes.adstore.version.marker.key"
_BOTH = {
    _INPUT: "kafka.planes",
    _SIDE: "kafka.planes",
    _EXTRACTOR: "plane.keys:Factory",
    _PROCESSOR: "plane.keys.Factory",
}


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        ({_INPUT: "kafka.airlines"}, {"is_broadcast": True}),
        ({"systems.kafka.streams.planes.samza.bootstrap": "true"}, {"is_bootstrap": True}),
        ({"stores.planes.factory": "in-memory"}, {"is_kept": False}),
        ({"stores.planes.clean.on.container.start": "true"}, {"is_kept": False}),
        (_BOTH, {"input_key": _INPUT, "extractor": "plane.keys:Factory"}),
        ({_PROCESSOR: "plane.keys:Factory"}, {"extractor": "plane.keys:Factory"}),
        ({"stores.planes.adstore.validity.ms": "-1"}, {"validity_ms": None}),
        ({_HEADER: "version"}, {"markers": VersionMarkers(header="version"), "is_bounded": True}),
        (
            {_KEY: "#", "stores.planes.adstore.version.late.ms": "5"},
            {"markers": VersionMarkers(key="#"), "late_ms": 5},
        ),
    ],
)
def test_a_key_of_a_store_is_one_of_its_facts(
    more: dict[str, str], facts: dict[str, object]
) -> None:
    """Both spellings agree; a marker, by a header or by a key, makes a data set bounded."""
    store = _one({_INPUT: "planes", **more})
    assert {name: getattr(store, name) for name in facts} == facts


def test_the_store_of_a_stream_is_found() -> None:
    """None for what tasks are to process."""
    found = _all({_INPUT: "planes", "adstore.manager.factory": "plane.store:Managers"})
    assert found.of_stream(SystemStream("kafka", "planes")) is found.stores["planes"]
    assert found.of_stream(SystemStream("kafka", "flights")) is None
    assert found.manager == "plane.store:Managers"


_FAULTS = (
    ({_SIDE: "planes,flights"}, f"{_SIDE} = 'planes,flights': one stream fills a store"),
    ({_INPUT: "planes,flights"}, f"{_INPUT} = 'planes,flights': one stream fills a store"),
    ({_INPUT: "planes", _SIDE: "flights"}, f"{_SIDE} = 'kafka.flights': {_INPUT} names another"),
    ({_INPUT: ".planes"}, f"{_INPUT} = '.planes': it must have the form system.stream"),
    ({_INPUT: "kafka.plans"}, f"{_INPUT} = 'kafka.plans': it is no input of the job"),
    (
        {_INPUT: "planes", "stores.planes.changelog": "c"},
        "stores.planes.changelog = 'kafka.c': stores.planes.adstore.input fills the store",
    ),
    (
        {_INPUT: "planes", "task.broadcast.inputs": "kafka.planes#0"},
        f"{_INPUT} = 'kafka.planes': it is in task.inputs and in task.broadcast.inputs",
    ),
    (
        {
            _INPUT: "planes",
            "job.systemstreampartition.grouper.factory": "group-by-system-stream-partition",
        },
        f"{_INPUT} = 'kafka.planes': job.systemstreampartition.grouper.factory=group-by-system",
    ),
    (
        {_INPUT: "planes", **_another("again", "planes")},
        f"{_INPUT} = 'kafka.planes': it fills store 'again' already",
    ),
    (
        {_INPUT: "planes", "task.inputs": "kafka.planes", "task.broadcast.inputs": ""},
        f"{_INPUT} = 'kafka.planes': every input of the job fills a store",
    ),
    ({_INPUT: "planes", _EXTRACTOR: "Factory"}, f"{_EXTRACTOR} = 'Factory': it must have the form"),
    (
        {_INPUT: "planes", "adstore.manager.factory": "org.apache.samza.Managers"},
        "adstore.manager.factory = 'org.apache.samza.Managers': it must have the form module:Name",
    ),
    (
        {_INPUT: "planes", _EXTRACTOR: "a:B", _PROCESSOR: "a:C"},
        f"{_PROCESSOR} = 'a:C': {_EXTRACTOR} names another class, a:B",
    ),
    ({_INPUT: "planes", _HEADER: "h", _KEY: "k"}, f"{_KEY} = 'k': {_HEADER} is set"),
    (
        {_INPUT: "planes", "stores.planes.rocksdb.ttl.ms": "7"},
        f"stores.planes.rocksdb.ttl.ms = '7': {_INPUT} fills the",
    ),
    ({"stores.other.adstore.input": "planes"}, "stores.other.factory is missing"),
)


@pytest.mark.parametrize(("more", "line"), _FAULTS, ids=[line[:60] for _, line in _FAULTS])
def test_each_fault_is_one_line_with_a_remedy(more: dict[str, str], line: str) -> None:
    """Key, value, rule and remedy; found before anything else is."""
    with pytest.raises(ConfigError, match=rf"^{re.escape(line)}.*; ") as caught:
        validate(Config({**_JOB, **more}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", [_INPUT, _SIDE])
def test_a_job_with_such_a_store_is_taken(key: str) -> None:
    """In either spelling; standbys keep it where a start may find it again, else that is said."""
    config = {**_JOB, key: "planes"}
    assert validate(Config(config)) == ()
    standby = {"job.host-affinity.enabled": "true", "job.hotstandby.enabled": "true"}
    assert validate(Config({**config, **standby})) == ()
    cleaned = {**config, "stores.planes.clean.on.container.start": "true"}
    with pytest.raises(ConfigError, match=r"no store has a changelog or is an adjunct one"):
        validate(Config({**cleaned, **standby}))
    counts = store_keys("counts", "string", changelog="kafka.counts")
    bootstrap = "systems.kafka.streams.planes.samza.bootstrap"
    expected = (
        "stores.planes is not kept by standbys, as no start uses what it finds of it: after a "
        "failover its container"
    )
    (line,) = validate(Config({**cleaned, **standby, **counts}))
    assert line == (
        f"{expected} has what kafka.planes brings from then on alone; set {bootstrap}=true"
    )
    (line,) = validate(Config({**cleaned, **standby, **counts, bootstrap: "true"}))
    assert line == f"{expected} fills it from kafka.planes"


@pytest.mark.parametrize("key", [_EXTRACTOR, _PROCESSOR])
def test_the_extractor_is_named_by_the_key_that_is_written(key: str) -> None:
    """For messages about its class."""
    assert extractor_key(Config({**_JOB, _INPUT: "planes", key: "a:B"}), "planes") == key


def test_tasks_have_the_other_inputs() -> None:
    """Those whose records make columns, and of which a pipeline has frames."""
    config = Config({**_JOB, _INPUT: "planes"})
    streams = {str(stream) for stream in streams_of_tasks(config)}
    assert "kafka.planes" not in streams
    assert streams
    assert {item.stream for item in input_serdes(config)} == {s.rpartition(".")[2] for s in streams}


def test_keys_without_effect_are_reported() -> None:
    """Each in one line, where nothing fills the store or where it has no versions."""
    config = Config({**_JOB, _EXTRACTOR: "a:B", "adstore.manager.factory": "a:M"})
    assert tuple(adjunct_warnings(config, AdjunctsConfig.of(config))) == (
        f"{_EXTRACTOR} has no effect: no input fills the store; set {_INPUT}",
        "adstore.manager.factory has no effect: no input fills a store",
    )
    share, late = (
        f"stores.planes.adstore.version.{option}" for option in ("minimum.share.percent", "late.ms")
    )
    validity = "stores.planes.adstore.validity.ms"
    more = {_INPUT: "planes", share: "50", late: "1", validity: "7"}
    memory = {"stores.planes.factory": "in-memory"}
    config = Config({**_JOB, **more, **memory})
    assert tuple(adjunct_warnings(config, AdjunctsConfig.of(config))) == (
        f"{validity} has no effect: no start uses what it finds of the store",
        f"{share} has no effect: the store has no version marker",
        f"{late} has no effect: the store has no version marker",
    )
    config = Config({**_JOB, **more, _HEADER: "version"})
    assert tuple(adjunct_warnings(config, AdjunctsConfig.of(config))) == ()
    own = {_INPUT: "planes", _EXTRACTOR: "a:B", "adstore.manager.factory": "a:M"}
    config = Config({**_JOB, **own})
    adjuncts = AdjunctsConfig.of(config)
    assert tuple(adjunct_warnings(config, adjuncts)) == (
        f"{_EXTRACTOR} has no effect: the manager of adstore.manager.factory makes the entries",
    )
    assert adjuncts.stores["planes"].made_by == adjuncts.manager == "a:M"


def test_a_pipeline_does_not_write_into_the_stream_of_a_store() -> None:
    """Each container would read again what any of them has made."""
    pipeline = {"task.class": "", "task.pipeline.sql": "SELECT key FROM flights"}
    store = _another("airlines", "kafka.airlines")
    job = {**_JOB, **store, **pipeline, "task.pipeline.output": "kafka.totals"}
    validate(Config({key: value for key, value in job.items() if value}))
    line = r"task\.pipeline\.output = 'kafka\.airlines': .* fills the adjunct store airlines"
    with pytest.raises(ConfigError, match=line):
        validate(Config({**job, "task.class": "", "task.pipeline.output": "kafka.airlines"}))


def test_frames_of_stores_have_a_bound() -> None:
    """One for all of a container."""
    key = keys.ADSTORE_FRAMES_MAX_BYTES
    assert key.read(Config(_JOB)) == 32 << 20
    with pytest.raises(ConfigError, match=r"adstore\.frames\.max\.bytes = '0'"):
        key.read(Config({**_JOB, key.name: "0"}))
