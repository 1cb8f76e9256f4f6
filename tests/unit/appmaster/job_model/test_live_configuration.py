"""Which configuration is in force, whatever the coordinator stream says."""

from __future__ import annotations

from homeport.appmaster.job_model.live_configuration import LiveConfiguration, PendingKey, read
from homeport.appmaster.yarn.submission_file import Submitted
from homeport.config.config import Config
from homeport.config.declarations.key_types import Liveness
from homeport.config.errors import ConfigError

FILE = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "job.container.count": "3",
        "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
        "systems.kafka.consumer.bootstrap.servers": "b:1",
        "task.class": "m:C",
        "task.inputs": "kafka.in",
        "cluster-manager.container.memory.mb": "1024",
    }
)
STORE = {
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.s",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "json",
}
MEMORY = "cluster-manager.container.memory.mb"
GROUPER = "job.systemstreampartition.grouper.factory"


def of(file: Config = FILE, **written: str) -> Submitted:
    """A submission of ``file`` with what the writer tool had set."""
    return Submitted(file.merged({k.replace("_", "."): v for k, v in written.items()}), file)


def test_values_of_the_stream_are_in_force() -> None:
    """Keys that the running job can apply, also those of the user's own."""
    stream = FILE.merged({"job.container.count": "5", "task.commit.ms": "7", "my.key": "x"})
    reading = read(of(), stream)
    assert reading.config == stream
    assert reading.pending == ()


def test_a_key_that_needs_a_redeploy_keeps_the_value_of_the_submission() -> None:
    """Each reader of the stream gets the same result, and reports the pending value."""
    reading = read(of(), FILE.merged({MEMORY: "2048"}))
    assert reading.config == FILE
    assert reading.pending == (PendingKey(MEMORY, "1024", "2048", Liveness.NEEDS_REDEPLOY),)
    assert str(reading.pending[0]) == (
        f"{MEMORY} stays '1024', although the coordinator stream says '2048': "
        "applied by the next deployment"
    )


def test_the_next_submission_applies_pending_keys() -> None:
    """It began with the value, and so it is in force."""
    submitted = Submitted(FILE.merged({MEMORY: "2048"}), FILE)
    reading = read(submitted, FILE.merged({MEMORY: "2048"}))
    assert reading.config[MEMORY] == "2048"
    assert reading.pending == ()


def test_a_key_that_state_fixes_is_not_applied() -> None:
    """Another grouper would give the stores to other tasks."""
    file = FILE.merged(STORE)
    reading = read(of(file), file.merged({GROUPER: "all-to-one"}))
    assert reading.config == file
    assert [(p.key, p.takes) for p in reading.pending] == [(GROUPER, Liveness.NEVER_WITH_STATE)]


def test_without_state_it_takes_a_redeploy() -> None:
    """The tasks are others afterwards, and there is no state to lose."""
    reading = read(of(), FILE.merged({GROUPER: "group-by-system-stream-partition"}))
    assert reading.config == FILE
    assert [(p.key, p.takes) for p in reading.pending] == [(GROUPER, Liveness.NEEDS_REDEPLOY)]


def test_a_key_with_a_deleted_record_has_the_value_of_the_file_again() -> None:
    """A record that the writer tool takes back does not leave the default behind."""
    submitted = of(job_container_count="5")
    without = Config({k: v for k, v in FILE.items() if k != "job.container.count"})
    assert read(submitted, without).config["job.container.count"] == "3"


def test_secrets_are_masked() -> None:
    """The status shows what is pending to everybody."""
    key = "systems.kafka.coordinator.password"
    file = FILE.merged({"job.coordinator.system": "kafka", "yarn.am.password": "a"})
    stream = file.merged({"yarn.am.password": "b", key: "c"})
    for pending in read(of(file), stream).pending:
        assert {pending.in_force, pending.wanted} <= {"********", None}


def test_an_invalid_value_leaves_the_configuration_in_force() -> None:
    """It is one line, the same for as long as it is there."""
    configuration = LiveConfiguration(of())
    assert configuration.wanted(FILE.merged({"job.container.count": "many"})) is None
    assert configuration.fault is not None
    assert configuration.fault.startswith("job.container.count = 'many'")
    assert configuration.wanted(FILE) == FILE
    assert configuration.fault is None


def test_a_configuration_without_a_valid_model_is_not_tried_again() -> None:
    """Until the stream says something else."""
    configuration = LiveConfiguration(of())
    stream = FILE.merged({"job.container.count": "50"})
    assert configuration.wanted(stream) == stream
    configuration.refused(stream, ConfigError("job.container.count", "50", "too many", "less"))
    assert configuration.wanted(stream) is None
    assert configuration.fault == "job.container.count = '50': too many; less"
    assert configuration.wanted(FILE.merged({"job.container.count": "5"})) is not None
    assert configuration.fault is None


def test_pending_keys_are_reported_beside_a_fault() -> None:
    """Both are reported at once."""
    configuration = LiveConfiguration(of())
    stream = FILE.merged({MEMORY: "2048", "job.container.count": "50"})
    assert configuration.wanted(stream) is not None
    configuration.refused(stream, ConfigError("job.container.count", "50", "too many", "less"))
    assert configuration.wanted(stream) is None
    assert [p.key for p in configuration.pending] == [MEMORY]
