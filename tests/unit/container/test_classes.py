"""Loading of what a job names, and the command that checks it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from class_questions import code_of

from homeport.config.errors import ConfigError
from homeport.config.settings.input_serdes import InputSerde
from homeport.config.settings.serde_names import ConfiguredSerde, SchemaSerde
from homeport.container.classes import (
    load_function,
    load_serde,
    load_task_class,
    require_task_class,
)
from homeport.container.serde.serdes import SerdeFailedError

MODULE = """
from homeport.config.settings.serde_names import SchemaSerde
from homeport.container.api import BatchTask, StreamTask

class Good(BatchTask):
    def process_batch(self, table, collector):
        pass

class Single(StreamTask):
    def process(self, message, collector, coordinator):
        pass

class Unfinished(BatchTask):
    pass

class Other:
    pass

def pipeline(frame):
    return frame

def two(frame, more):
    return frame

class Hex:
    def to_bytes(self, value):
        return value if value is None else bytes.fromhex(value)
    def from_bytes(self, data):
        return {b"\\x01": "01"}[data]

class HalfSerde:
    def to_bytes(self, value):
        return b""

class ExitingSerde:
    def to_bytes(self, value):
        raise SystemExit(0)
    def from_bytes(self, data):
        raise SystemExit(0)

class ExitingAtBirth(Hex):
    def __init__(self):
        raise SystemExit

class NeedsMore(Hex):
    def __init__(self, more):
        pass
"""


@pytest.fixture(autouse=True)
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A job's modules on the path."""
    (tmp_path / "checked_job.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "broken_job.py").write_text("import json\njson.nothing('a\\nb')\n")
    (tmp_path / "exiting_job.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("checked_job", "broken_job"):
        sys.modules.pop(name, None)


def test_good_classes_are_loaded() -> None:
    """A BatchTask, a StreamTask, and a function of one frame."""
    assert load_task_class("checked_job:Good", (), has_pipeline=False).__name__ == "Good"
    assert load_task_class("checked_job:Single", (), has_pipeline=False).__name__ == "Single"
    assert code_of(task_class="checked_job:Single") == 0
    assert load_function("checked_job:pipeline")("frame") == "frame"
    assert code_of(task_class="checked_job:Good", pipeline="checked_job:pipeline") == 0


_CLASS, _PIPELINE = ("task_class", "task.class"), ("pipeline", "task.pipeline.class")


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (_CLASS, "checked_job", "must have the form module:name"),
        (_CLASS, "no_such_job:X", "cannot be imported: ModuleNotFoundError: No module named"),
        (_CLASS, "broken_job:X", "cannot be imported: AttributeError: module 'json' has no"),
        (_CLASS, "exiting_job:X", "cannot be imported: SystemExit: 0"),
        (_CLASS, "checked_job:Missing", "the module checked_job has no 'Missing'"),
        (_CLASS, "checked_job:Other", "this is the class Other(object)"),
        (_CLASS, "checked_job:pipeline", "this is a function"),
        (_CLASS, "checked_job:Unfinished", "define process_batch"),
        (_PIPELINE, "checked_job:Good", "this is the class"),
        (_PIPELINE, "checked_job:two", "called with one: missing"),
    ],
)
def test_a_bad_class_or_pipeline_is_reported_in_one_line(
    kind: tuple[str, str], name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names key and value, and the exit code is 1; a pipeline takes exactly one frame."""
    field, key = kind
    assert code_of(**{field: name}) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {key} = '{name}': ")
    assert words in line


def test_an_own_serde_is_an_object_of_its_class() -> None:
    """Faults of its methods are reported as of any serde; bytes are all that it may make."""
    own = load_serde("stores.s.msg.serde", "checked_job:Hex")
    assert (own.to_bytes("01"), own.from_bytes(b"\x01")) == (b"\x01", "01")
    with pytest.raises(TypeError, match="'checked_job:Hex' made NoneType, not bytes"):
        own.to_bytes(None)
    with pytest.raises(SerdeFailedError, match=r"'checked_job:Hex' failed on b'\\x02': KeyError"):
        own.from_bytes(b"\x02")
    assert load_serde("stores.s.msg.serde", "long").name == "long"
    assert _checked(("stores.s.key.serde", "long"), ("stores.s.msg.serde", "checked_job:Hex")) == 0


def _checked(*serdes: tuple[str, ConfiguredSerde]) -> int:
    return code_of(serdes=tuple((key, serde, "") for key, serde in serdes))


EXTRACTOR = "stores.planes.adstore.key.value.extractor.factory"
JOINING, MANAGING = "tests.unit.testing.joining_job", "tests.unit.testing.managing_job"
API = "homeport.container.api"


@pytest.mark.parametrize(
    ("asks", "right", "wrong"),
    [
        (
            lambda name: (EXTRACTOR, {"extractors": ((EXTRACTOR, name),)}),
            f"{JOINING}:Models",
            {
                f"{JOINING}:Join": "it must name a subclass of KeyValueExtractorFactory",
                f"{JOINING}:config": "this is a function",
                f"{API}:KeyValueExtractorFactory": "define get_key_value_extractor",
            },
        ),
        (
            lambda name: ("adstore.manager.factory", {"manager": name}),
            f"{MANAGING}:Managers",
            {
                f"{MANAGING}:Manager": f"subclass of AdjunctDataStoreManagerFactory of {API}",
                f"{MANAGING}:missing": f"the module {MANAGING} has no 'missing'",
                f"{API}:AdjunctDataStoreManagerFactory": "define get_adjunct_data_store_manager",
            },
        ),
    ],
    ids=["extractors", "managers"],
)
def test_extractors_and_managers_are_made_by_a_factory(
    asks: Callable[[str], tuple[str, dict[str, object]]],
    right: str,
    wrong: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is none, or not whole, is refused before the job begins."""
    assert code_of(**asks(right)[1]) == 0
    capsys.readouterr()
    for name, words in wrong.items():
        key, asked = asks(name)
        assert code_of(**asked) == 1
        line = capsys.readouterr().err
        assert line.startswith(f"error: {key} = '{name}': ")
        assert words in line


OF = "systems.kafka.streams"
SCHEMAS = {"frame": SchemaSerde("json", "s", "n INT"), "more": SchemaSerde("json", "t", "m INT")}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"pipeline": "checked_job:two"}, ""),
        ({"pipeline": "checked_job:pipeline"}, "this pipeline takes the values of all"),
        ({"task_class": "checked_job:Good"}, "a BatchTask gets the values of all inputs"),
        ({"task_class": "checked_job:Single"}, ""),
        ({"has_pipeline": True}, ""),
    ],
)
def test_inputs_of_two_schemas_need_frames_of_their_own(
    asked: dict[str, object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of SQL the frames are known when its text is; a StreamTask reads each by its own serde."""
    inputs = tuple(
        InputSerde(f"{OF}.{stream}.samza.msg.serde", "kafka", stream, entry)
        for stream, entry in SCHEMAS.items()
    )
    code = code_of(inputs=inputs, streams=("kafka.frame", "kafka.more"), **asked)
    assert (code, words in capsys.readouterr().err) == (int(bool(words)), True)


def test_a_serde_that_exits_has_failed_and_says_nothing_of_the_bytes() -> None:
    """It is no reason to drop the record, and ends no process."""
    own = load_serde("stores.s.msg.serde", "checked_job:ExitingSerde")
    stated = "'checked_job:ExitingSerde' failed: SystemExit"
    with pytest.raises(SerdeFailedError, match=stated):
        own.to_bytes("01")
    with pytest.raises(SerdeFailedError, match=stated):
        own.from_bytes(b"\x01")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_job:X", "cannot be imported: ModuleNotFoundError: No module named"),
        ("checked_job:pipeline", "this is a function"),
        ("checked_job:HalfSerde", "its from_bytes is None, which cannot be called"),
        ("checked_job:NeedsMore", "an object cannot be made of it: TypeError"),
        ("checked_job:ExitingAtBirth", "an object cannot be made of it: SystemExit"),
        (SchemaSerde("avro", "s", '{"type":"nothing"}'), "it is no Avro schema (UnknownTy"),
        (SchemaSerde("json", "s", "a strng"), "it is no schema: 'strng' is no type"),
    ],
)
def test_a_bad_serde_is_reported_in_one_line(
    name: ConfiguredSerde, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names the key that asks for it, and the exit code is 1."""
    assert _checked(("stores.s.msg.serde", name)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    key = "serializers.registry.s.schema" if isinstance(name, SchemaSerde) else "stores.s.msg.serde"
    assert line.startswith(f"error: {key} = ")
    assert words in line


def test_a_pipeline_needs_a_task() -> None:
    """Its rows would go nowhere."""
    with pytest.raises(ConfigError, match=r"task\.class is missing"):
        require_task_class(None)
    assert require_task_class("m:C") == "m:C"
