"""What run-job refuses to change: code, one-time keys; and records that Kafka would not take."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from jobs_at_hand import job_at_hand
from small_jobs import KEYS, store_keys
from stream_in_memory import InMemoryCoordinatorStream
from zipped import sha256_of, zipped

from homeport.appmaster.environment.job_python import JobPython
from homeport.appmaster.yarn.submission import NodePython
from homeport.cli.yarn import state_check
from homeport.cli.yarn.job import Job
from homeport.cli.yarn.state_check import check_package, check_record_sizes, require_unchanged
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import TaskConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.job_model import JobModel, SystemStream, SystemStreamPartition
from homeport.job_coordinator.model.job_package import with_environment
from homeport.job_coordinator.model.upgrade import UpgradePhase, UpgradeState

NEW, OLD, OTHER = "ab" * 32, "cd" * 32, "ef" * 32
DONE = UpgradeState("u", "application_1_1", NEW, None, 1, UpgradePhase.DONE)
GONE = replace(DONE, phase=UpgradePhase.GONE_BACK)
FORWARD = replace(DONE, phase=UpgradePhase.FORWARD, previous=OLD)


CODE = zipped({"m.py": "1"})
PYTHON = JobPython(NodePython.installed("/p"), ("/p",), "yarn.python.executable", "/p")


def _job(state: UpgradeState | None, *packages: bytes) -> Job:
    """A job of the folder ``old`` whose coordinator stream has a record of an upgrade, or none."""
    stream = InMemoryCoordinatorStream()
    for package in packages:
        JobPackageManager(stream).write(package)
    stream.write([UpgradeManager.state_message(state)] if state else [])
    return job_at_hand(Config({"yarn.package.path": "old"}), stream)


@pytest.mark.parametrize(
    ("state", "package"),
    [
        (None, OLD),
        (DONE, NEW),
        (GONE, OTHER),
        (replace(GONE, previous=OLD), OLD),
        (FORWARD, NEW),
        (FORWARD, OLD),
        (replace(FORWARD, previous=None), OTHER),
    ],
)
def test_the_code_that_the_job_ran_may_be_submitted(
    state: UpgradeState | None, package: str
) -> None:
    """And any, where none of an upgrade's ran last: to submit new code is no accident."""
    check_package(_job(state), package, PYTHON, is_other_meant=False)


@pytest.mark.parametrize(
    ("state", "how"),
    [
        (DONE, "has left the job with abababababab"),
        (replace(GONE, previous=NEW), "has left the job with abababababab"),
        (FORWARD, r"\(forward\) was under way between abababababab and cdcdcdcdcdcd"),
    ],
)
def test_other_code_is_no_accident(
    state: UpgradeState, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names both packages, the key and the option; with it, a note alone."""
    rule = f"it is package efefefefefef, and the last upgrade, in application_1_1, {how}"
    remedy = "let it name the code of the upgrade; --other-package if other code is meant"
    with pytest.raises(ConfigError, match=f"^yarn.package.path = 'old': {rule}; {remedy}$"):
        check_package(_job(state), OTHER, PYTHON, is_other_meant=False)
    check_package(_job(state), OTHER, PYTHON, is_other_meant=True)
    assert re.fullmatch(f"note: {rule}\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("left", "submitted"),
    [("/p", "/p"), ("hdfs://nn/e/homeport-1.tar.gz", "build/homeport-1.tar.gz")],
)
def test_the_environment_that_an_upgrade_has_left_may_be_submitted(
    left: str, submitted: str
) -> None:
    """With the code of the zip without it; archives are named by their content."""
    package = with_environment(CODE, left)
    job = _job(replace(DONE, package=sha256_of(package)), package)
    check_package(job, sha256_of(CODE), replace(PYTHON, value=submitted), is_other_meant=False)


def test_another_environment_is_no_accident(capsys: pytest.CaptureFixture[str]) -> None:
    """One line names both, the key and the option; with it, a note alone."""
    package = with_environment(CODE, "/q")
    job = _job(replace(DONE, package=sha256_of(package)), package)
    rule = "the last upgrade, in application_1_1, has left the job with environment /q"
    line = f"^yarn.python.executable = '/p': {rule}; name that one; --other-package if"
    with pytest.raises(ConfigError, match=line):
        check_package(job, sha256_of(CODE), PYTHON, is_other_meant=False)
    check_package(job, sha256_of(CODE), PYTHON, is_other_meant=True)
    assert capsys.readouterr().err == f"note: {rule}\n"


def test_a_job_that_is_new_may_have_any_code() -> None:
    """It has no coordinator stream yet."""
    check_package(job_at_hand(Config()), OTHER, PYTHON, is_other_meant=False)


GROUPER = "job.systemstreampartition.grouper.factory"
CONFIG = Config({**KEYS, **store_keys("s", "string", changelog="kafka.s")})


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> InMemoryCoordinatorStream:
    """Of a job with state, whose only input has two partitions."""
    counts = {SystemStream("kafka", "in"): 2}
    monkeypatch.setattr(state_check, "counts_now", lambda _config: counts)
    made = InMemoryCoordinatorStream()
    ConfigManager(made).replace(CONFIG, "job-runner")
    for number in range(2):
        task = f"Partition {number}"
        ssp = SystemStreamPartition("kafka", "in", number)
        made.write(
            [
                wire.set_changelog(task, number),
                wire.set_task_container_assignment(task, "0"),
                wire.set_task_partition_assignment(ssp, [task]),
            ]
        )
    made.catch_up()
    return made


def test_the_same_job_again_is_no_change(stream: InMemoryCoordinatorStream) -> None:
    """Nothing is written, whatever is found."""
    written = len(stream.log)
    require_unchanged(stream, CONFIG.merged({"job.container.count": "2", "task.commit.ms": "1"}))
    assert len(stream.log) == written


def test_a_changed_key_is_one_line_with_old_new_and_remedy(
    stream: InMemoryCoordinatorStream,
) -> None:
    """COORD, benefit 3; without state it may change."""
    written, changed = len(stream.log), CONFIG.merged({GROUPER: "all-ssp-to-single-task"})
    with pytest.raises(ConfigError) as caught:
        require_unchanged(stream, changed)
    assert str(caught.value) == (
        f"{GROUPER} = 'all-ssp-to-single-task': it was 'its default' when the job's state was "
        "made, which a change would mix up; set it back, or begin from nothing by run-job "
        "--reset-state"
    )
    assert len(stream.log) == written
    ConfigManager(stream).replace(
        Config({k: v for k, v in CONFIG.items() if not k.startswith("stores.")}), "job-runner"
    )
    require_unchanged(stream, changed)


def test_an_input_that_has_other_partitions_is_reported(
    stream: InMemoryCoordinatorStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key changed: the facts did. Expansion, where it is on, says so in its own words."""
    counts = {SystemStream("kafka", "in"): 1}
    monkeypatch.setattr(state_check, "counts_now", lambda _config: counts)
    with pytest.raises(ConfigError, match=r"input kafka\.in has 1 partitions and had 2"):
        require_unchanged(stream, CONFIG)
    fixed = CONFIG.merged({"job.systemstreampartition.input.expansion.enabled": "false"})
    ConfigManager(stream).replace(fixed, "job-runner")
    with pytest.raises(ConfigError, match=r"it was .task 'Partition 1' of kafka\.in#1. when"):
        require_unchanged(stream, fixed)


def test_an_unfinished_reset_must_be_finished_first(stream: InMemoryCoordinatorStream) -> None:
    """Whatever the configuration says."""
    StateResetManager(stream).write(StateReset(1, ResetPhase.BEGUN))
    stream.catch_up()
    with pytest.raises(ConfigError, match="finish it by run-job --reset-state"):
        require_unchanged(stream, CONFIG)


LIMIT = 20_000


def model(partitions: int, **values: str) -> JobModel:
    """A job of one container whose tasks all read kafka.rules#0."""
    config = Config({**KEYS, "task.broadcast.inputs": "kafka.rules#0", **values})
    (stream,) = TaskConfig.of(config).inputs
    counts = {stream: partitions, SystemStream("kafka", "rules"): 1}
    return calculate_job_model(config, counts, NOTHING)


def _check(job: JobModel) -> None:
    check_record_sizes(job.config, job, LIMIT)


def test_size_is_of_each_record_not_of_all() -> None:
    """COORD, benefit 1: a configuration has no bound, of keys or of bytes."""
    _check(model(10, **{f"key.{n}": "x" * 10_000 for n in range(100)}))


def test_a_value_that_is_too_large_is_named_with_size_limit_and_remedy() -> None:
    """The value itself is cut short, and a secret one is not shown."""
    with pytest.raises(ConfigError) as caught:
        _check(model(1, big="x" * LIMIT))
    assert str(caught.value) == (
        f"big = '{'x' * 40}...': it would be a record of 20351 bytes; the coordinator stream takes "
        "20000 at most; shorten it, or raise max.message.bytes of topic "
        "'__samza_coordinator_j_1' and systems.kafka.producer.max.request.size"
    )
    with pytest.raises(ConfigError, match=r"my\.password = '\*+': it would be"):
        _check(model(1, **{"my.password": "x" * LIMIT}))
    with pytest.raises(ConfigError) as caught:
        _check(model(1, url=f"https://user:{'x' * LIMIT}@host"))
    assert str(caught.value).startswith("url = 'https://user:********@host...': it would be")


def test_a_record_of_many_tasks_with_long_names_is_reported_at_submission() -> None:
    """The changelog partitions of 256 tasks have one record."""
    grouper = "job.systemstreampartition.grouper.factory"
    values = {
        grouper: "group-by-system-stream-partition",
        "task.inputs": f"kafka.{'s' * 200}",
        "task.broadcast.inputs": "",
    }
    _check(model(50, **values))
    with pytest.raises(ConfigError) as caught:
        _check(model(90, **values))
    assert (caught.value.key, caught.value.value) == ("set-state-fact", "partitions 0")
    assert caught.value.remedy.startswith("raise max.message.bytes of topic")


def test_a_partition_that_too_many_tasks_read_is_reported_at_submission() -> None:
    """Its record names every task: the one record of a JobModel that grows with the job."""
    _check(model(500))
    with pytest.raises(ConfigError) as caught:
        _check(model(2000))
    assert caught.value.key == "task.broadcast.inputs"
    assert caught.value.value == "kafka.rules#0"
    assert "set-task-partition-assignment" in caught.value.rule
    assert caught.value.remedy.startswith("broadcast to fewer tasks, or raise max.message.bytes")
