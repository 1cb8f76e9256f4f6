"""What the writer tool makes of its command line."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from small_jobs import KEYS, store_keys
from statuses import status_of
from stream_in_memory import InMemoryCoordinatorStream
from typer.testing import CliRunner

from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.cli.job.coordinator_stream_writer import (
    How,
    WritableType,
    _write,
    app,
    message_of,
    messages_for,
    placement_warnings,
    require_functions,
    task_warnings,
)
from homeport.cli.job.job_view import JobView, RunningJob
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.loading.loader import load
from homeport.config.settings.adjunct_section import streams_of_tasks
from homeport.config.settings.validation import validate
from homeport.job_coordinator import config_change
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE, ConfigManager
from homeport.job_coordinator.metadata.task_assignment import LocalityManager, TaskAssignmentManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStream


def test_each_type_is_the_message_of_its_name() -> None:
    """A value becomes the record of the type, its absence the tombstone."""
    assert message_of(WritableType.SET_CONFIG, "a", "1") == wire.set_config("a", "1")
    job = Config({"job.name": "flights"})
    named = message_of(WritableType.SET_CONFIG, "app.name", "flights", job, is_forced=True)
    assert named == wire.set_config("app.name", "flights")
    assert message_of(WritableType.SET_CHANGELOG, "t", "3") == wire.set_changelog("t", 3)
    host = message_of(WritableType.SET_CONTAINER_HOST, "0", "NM1")
    assert host == wire.set_container_host_assignment("0", "nm1")
    assert message_of(WritableType.SET_CONFIG, "a", None) == wire.tombstone("set-config", "a")


@pytest.mark.parametrize(
    ("message_type", "key", "value"),
    [
        (WritableType.SET_CONFIG, " ", "1"),
        (WritableType.SET_CONFIG, "job.container.count", "many"),
        (WritableType.SET_CONFIG, "job.name", "another"),
        (WritableType.SET_CONFIG, "systems.kafka.samza.offset.default", "newest"),
        (WritableType.SET_CHANGELOG, "t", "-1"),
        (WritableType.SET_CHANGELOG, "t", "x"),
        (WritableType.SET_CONTAINER_HOST, "0", " "),
    ],
)
def test_a_value_that_would_stop_the_job_is_refused(
    message_type: WritableType, key: str, value: str
) -> None:
    """A value that its reader could not use never reaches the stream."""
    with pytest.raises(ConfigError):
        message_of(message_type, key, value)


def test_a_processors_host_is_that_of_its_tasks() -> None:
    """Tasks' records decide, so they are written, or deleted, with the processor's."""
    stream = InMemoryCoordinatorStream()
    assignment = TaskAssignmentManager(stream)
    owners = {TaskName("t0"): ProcessorId("0"), TaskName("t1"): ProcessorId("1")}
    stream.write(assignment.messages(owners))
    stream.catch_up()
    written = messages_for(wire.set_container_host_assignment("0", "nm1"), assignment)
    assert written == (
        wire.set_task_host_assignment("t0", "nm1"),
        wire.set_container_host_assignment("0", "nm1"),
    )
    deleted = messages_for(wire.tombstone("set-container-host-assignment", "0"), assignment)
    assert [(m.type, m.key, m.is_tombstone) for m in deleted] == [
        ("set-task-host-assignment", "t0", True),
        ("set-container-host-assignment", "0", True),
    ]
    assert messages_for(wire.set_config("a", "b"), assignment) == (wire.set_config("a", "b"),)


def test_the_further_keys_of_a_change_are_written_before_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reader of a part refuses it, as the store's input is none yet; a dry run writes nothing."""
    counts = {SystemStream("kafka", name): 2 for name in ("in", "more")}
    monkeypatch.setattr(config_change, "counts_now", lambda _config: counts)
    stream, job = InMemoryCoordinatorStream(), Config({**KEYS, "task.inputs": "kafka.in"})
    store = {
        "stores.more.factory": "in-memory",
        "stores.more.key.serde": "string",
        "stores.more.msg.serde": "string",
        "stores.more.adstore.input": "kafka.more",
    }
    message = wire.set_config("task.inputs", "kafka.in,kafka.more")
    view, lines = JobView(job, "topic", stream, None), list[str]()
    _write(view, message, How(is_dry_run=True, also=store), lines.append)
    assert stream.log == []
    _write(view, message, How(also=store), lines.append)
    stream.catch_up()
    assert [wire.decode(*record).key for record in stream.log] == [*store, "task.inputs"]
    assert lines == ["used from the job's next start"] * 2
    _write(view, wire.tombstone("set-config", "task.inputs"), How(also=dict.fromkeys(store)), print)
    stream.catch_up()
    assert ConfigManager(stream).written() == Config()


def test_a_new_input_brings_the_keys_of_its_stream(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has its serdes, its beginning and its store, which the deployment had not."""
    counts = {SystemStream("kafka", name): 2 for name in ("in", "more", "plans")}
    monkeypatch.setattr(config_change, "counts_now", lambda _config: counts)
    deployed = {**KEYS, "task.inputs": "kafka.in"}
    of_stream = "systems.kafka.streams.more."
    comes = {
        f"{of_stream}samza.msg.serde": "mine",
        f"{of_stream}samza.offset.default": "oldest",
        "serializers.registry.mine.class": "json",
        **store_keys("plans", "string", factory="in-memory", adstore_input="kafka.plans"),
    }
    file = Config({**deployed, **comes, "systems.kafka.streams.other.samza.bootstrap": "true"})
    stream = InMemoryCoordinatorStream()
    stream.write([wire.set_config(k, v) for k, v in deployed.items()])
    stream.catch_up()
    before, view = len(stream.log), JobView(file, "topic", stream, None)
    value = "kafka.in,kafka.more,kafka.plans"
    _write(view, wire.set_config("task.inputs", value), How(), print)
    stream.catch_up()
    assert {wire.decode(*r).key for r in stream.log[before:]} == {*comes, "task.inputs"}
    assert f"with it: {of_stream}samza.msg.serde = mine, by the job's file\n" in (
        capsys.readouterr().err
    )
    assert ConfigManager(stream).read() == Config({**deployed, **comes, "task.inputs": value})


def test_a_key_of_a_new_input_is_judged_as_one_that_is_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """run-job imports a class that the file alone names: none comes by the stream."""
    counts = {SystemStream("kafka", name): 2 for name in ("in", "more")}
    monkeypatch.setattr(config_change, "counts_now", lambda _config: counts)
    deployed = {**KEYS, "task.inputs": "kafka.in"}
    own = {
        "systems.kafka.streams.more.samza.msg.serde": "mine",
        "serializers.registry.mine.class": "my.module:Serde",
    }
    stream = InMemoryCoordinatorStream()
    stream.write([wire.set_config(k, v) for k, v in deployed.items()])
    stream.catch_up()
    before, view = len(stream.log), JobView(Config({**deployed, **own}), "topic", stream, None)
    with pytest.raises(ConfigError, match="from the properties file alone"):
        _write(view, wire.set_config("task.inputs", "kafka.in,kafka.more"), How(), print)
    assert len(stream.log) == before


def test_an_input_that_goes_takes_back_what_was_set_of_its_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would stand above the file when the input comes back; others' keys stay."""
    counts = {SystemStream("kafka", name): 2 for name in ("in", "more")}
    monkeypatch.setattr(config_change, "counts_now", lambda _config: counts)
    deployed = {**KEYS, "task.inputs": "kafka.in"}
    by_hand = {
        "systems.kafka.streams.more.samza.msg.serde": "json",
        "task.inputs": "kafka.in,kafka.more",
        "systems.kafka.streams.in.samza.bootstrap": "true",
    }
    stream = InMemoryCoordinatorStream()
    stream.write([wire.set_config(k, v) for k, v in deployed.items()])
    hand = [wire.set_config(k, v) for k, v in by_hand.items()]
    stream.write(
        [m.stamped(source=WRITER_SOURCE, host="", username="", timestamp_ms=0) for m in hand]
    )
    stream.catch_up()
    view = JobView(Config(deployed), "topic", stream, None)
    _write(view, wire.set_config("task.inputs", "kafka.in"), How(), print)
    stream.catch_up()
    assert "systems.kafka.streams.more.samza.msg.serde" not in ConfigManager(stream).read()
    assert "systems.kafka.streams.in.samza.bootstrap" in ConfigManager(stream).read()


def test_an_input_needs_a_function_of_the_jobs_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its containers would fail, and with them the job; the input of a store needs none."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "sums_of_one.py"
    source = 'job.input("in", key=str, value=str)'
    text = f'from homeport import Job\njob = Job("sums")\njob.each({source})(repr)\n'
    path.write_text(text, encoding="utf-8")
    counts = {SystemStream("kafka", name): 2 for name in ("in", "more")}
    monkeypatch.setattr(config_change, "counts_now", lambda _config: counts)
    stream, how = InMemoryCoordinatorStream(), How(check=partial(require_functions, str(path)))
    job = load(str(path), ["job.coordinator.replication.factor=1"], None)
    view = JobView(job, "topic", stream, None)
    message = wire.set_config("task.inputs", "kafka.in,kafka.more")
    with pytest.raises(ConfigError) as refused:
        _write(view, message, how, print)
    assert str(refused.value) == (
        "job.each = 'kafka.more': the job has no function for its records; write one, let the job "
        "run that code (homeport upgrade), then set the key"
    )
    assert stream.log == []
    store = store_keys("more", "string", factory="in-memory", adstore_input="kafka.more")
    _write(view, message, replace(how, also=store), list[str]().append)
    assert stream.log != []


@pytest.mark.parametrize("named", ["task.inputs", "stores.more.factory"])
def test_no_part_of_a_change_gives_the_tasks_what_fills_a_store(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Whichever key is named first; a tool that was killed has its change made by the next one."""
    counts = {SystemStream("kafka", name): 2 for name in ("in", "more")}
    monkeypatch.setattr(config_change, "counts_now", lambda _config: counts)
    file = Config({**KEYS, "task.inputs": "kafka.in"})
    comes = {
        "task.inputs": "kafka.in,kafka.more",
        **store_keys("more", "string", factory="in-memory", adstore_input="kafka.more"),
    }
    goes: dict[str, str | None] = {**dict.fromkeys(comes), "task.inputs": "kafka.in"}
    written = [wire.set_config(k, v) for k, v in file.items()]
    for change in (comes, goes, comes, dict.fromkeys(comes)):
        stream = InMemoryCoordinatorStream()
        stream.write(written)
        stream.catch_up()
        before, more = len(stream.log), {k: v for k, v in change.items() if k != named}
        value = change[named]
        kind = WritableType.SET_CONFIG
        first = wire.tombstone(kind, named) if value is None else wire.set_config(named, value)
        _write(JobView(file, "topic", stream, None), first, How(also=more), list[str]().append)
        stream.catch_up()
        after = ConfigManager(stream).read()
        for count in range(before + 1, len(stream.log)):
            part = InMemoryCoordinatorStream()
            part.log.extend(stream.log[:count])
            part.catch_up()
            config = ConfigManager(part).read()
            try:
                validate(config)
            except ConfigError:
                pass
            else:
                assert SystemStream("kafka", "more") not in streams_of_tasks(config)
            _write(JobView(file, "topic", part, None), first, How(also=more), list[str]().append)
            part.catch_up()
            assert ConfigManager(part).read() == after
        written = [wire.set_config(k, v) for k, v in after.items()]


STATUS: dict[str, Any] = {
    "containers": [{"processor_id": "0"}, {"processor_id": "1"}],
    "hosts": ["nm1", "nm2", "nm3", "nm4"],
    "drained_hosts": ["nm3"],
    "excluded_hosts": ["nm4"],
}


def _job(stream: InMemoryCoordinatorStream, *, runs: bool) -> JobView:
    running = SimpleNamespace(client=SimpleNamespace(status=lambda: status_of(STATUS)))
    return JobView(Config(KEYS), "topic", stream, cast("RunningJob", running) if runs else None)


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """Of a job with two processors of one task each; the first has its home on nm1."""
    made = InMemoryCoordinatorStream()
    tasks = {TaskName("t0"): ProcessorId("0"), TaskName("t1"): ProcessorId("1")}
    made.write(TaskAssignmentManager(made).messages(tasks))
    LocalityManager(made).write(ProcessorId("0"), [TaskName("t0")], Host("nm1"), None)
    made.catch_up()
    return made


@pytest.mark.parametrize("runs", [False, True])
def test_a_processor_that_the_job_lacks_is_one_line(
    stream: InMemoryCoordinatorStream, *, runs: bool
) -> None:
    """The operator hears what there is, and when the record counts; a deletion is no mistake."""
    unknown = wire.set_container_host_assignment("7", "nm9")
    assert placement_warnings(_job(stream, runs=runs), unknown) == [
        (
            "--key = '7': the job has no processor of that id, but 0, 1: the record is read once "
            "there is one"
        )
    ]
    gone = wire.tombstone("set-container-host-assignment", "7")
    assert placement_warnings(_job(stream, runs=runs), gone) == []


@pytest.mark.parametrize(
    ("host", "rule"),
    [
        ("nm9", "it is no live host of the cluster"),
        ("nm3", "it is drained, so that no container is placed there"),
        ("nm4", "it has fallen silent and is not asked"),
        ("nm2", None),
    ],
)
def test_a_host_that_takes_no_container_is_one_line(
    stream: InMemoryCoordinatorStream, host: str, rule: str | None
) -> None:
    """With the home that the record has taken from the processor, if it had another one."""
    job = _job(stream, runs=True)
    begin = f"--value = {host!r}: {rule}: the processor starts elsewhere while it is so"
    for processor, place in (("0", "; its home was nm1"), ("1", "")):
        found = placement_warnings(job, wire.set_container_host_assignment(processor, host))
        assert found == ([] if rule is None else [f"{begin}{place}"])


def test_yarn_says_which_hosts_a_stopped_job_has(
    stream: InMemoryCoordinatorStream,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A note names a cluster that cannot be asked from here."""
    job = _job(stream, runs=False)
    message = wire.set_container_host_assignment("0", "nm9")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    assert placement_warnings(job, message) == []
    note = "note: whether the cluster has the host 'nm9' is not checked: HADOOP_CONF_DIR is not set"
    assert capsys.readouterr().err.startswith(note)
    hosts = frozenset({Host("nm1"), Host("nm2")})
    monkeypatch.setattr(ResourceManagerRest, "running_hosts", lambda _self: hosts)
    here = ResourceManagerRest((), "nowhere")
    monkeypatch.setattr(ResourceManagerRest, "from_environment", lambda _environment: here)
    assert placement_warnings(job, message) == [
        (
            "--value = 'nm9': it is no live host of the cluster; there are nm1, nm2: the processor "
            "starts elsewhere while it is so; its home was nm1"
        )
    ]
    assert placement_warnings(job, wire.set_container_host_assignment("0", "nm2")) == []


def test_a_task_that_the_job_lacks_is_one_line(stream: InMemoryCoordinatorStream) -> None:
    """A job without tasks may get any; a deletion is no mistake."""
    job = _job(stream, runs=False)
    assert task_warnings(job, wire.set_changelog("t0", 0)) == []
    assert task_warnings(job, wire.set_changelog("t9", 9)) == [
        (
            "--key = 't9': the job has no task of that name, but t0, t1: the record is read once "
            "there is one"
        )
    ]
    assert task_warnings(job, wire.tombstone("set-changelog", "t9")) == []
    new = _job(InMemoryCoordinatorStream(), runs=False)
    assert task_warnings(new, wire.set_changelog("t9", 9)) == []


@pytest.mark.parametrize("extra", [[], ["--value", "1", "--delete"]])
def test_value_and_delete_exclude_each_other(extra: list[str]) -> None:
    """Exactly one of the two says what is wanted."""
    arguments = ["--config-path", "p", "--type", "set-config", "--key", "a", *extra]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ConfigError)
    assert "exactly one of --value and --delete" in str(result.exception)


def test_help_names_the_types() -> None:
    """--help is enough to use the tool."""
    result = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for word in ("set-config", "set-changelog", "set-container-host-assignment", "--delete"):
        assert word in result.output
