"""The steps of ``homeport delete-job``, their order, and what is left, without Kafka and YARN."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from jobs_at_hand import application_of, job_at_hand
from left_stores import store_in
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.yarn.hadoop_files import FileFacts
from homeport.cli.host.deleted_state import clean_command_of, own_folders_of
from homeport.cli.host.job_on_host import JobFolder
from homeport.cli.options import NamedJob
from homeport.cli.yarn import delete_job_command, job, job_deletion, submission_claim
from homeport.cli.yarn.job import Job
from homeport.cli.yarn.job_deletion import Ended, JobEnd, Kind, Outcome, other_jobs
from homeport.config.config import Config
from homeport.config.declarations.standalone_keys import LOCAL, TO_YARN
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.deleted_jobs import DeletedJob
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import ProcessorEpoch, processor_epoch_message
from homeport.job_coordinator.metadata.lifecycle import StopManager
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from homeport.job_coordinator.metadata.task_assignment import UsedHostManager
from homeport.job_coordinator.metadata.topics import (
    ChangelogTopicManager,
    ChangelogTopicRecord,
    InputTopicManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.planning.deletion import OtherJobs

CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "task.class": "m:T",
        "task.inputs": "kafka.in",
        "systems.kafka.consumer.bootstrap.servers": "h:1",
        "stores.s.factory": "rocksdb",
        "stores.s.key.serde": "string",
        "stores.s.msg.serde": "string",
        "stores.s.changelog": "log",
    }
)
LOG = SystemStream("kafka", "log")
CHECKPOINTS = "__samza_checkpoint_ver_1_for_j_1"


@dataclass
class Cluster:
    """The job's topics, and a file system; ``done``: what was changed, in order."""

    topics: dict[str, str] = field(default_factory=lambda: {CHECKPOINTS: "id-c", "log": "id-l"})
    files: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    # As a TopicAdmin.

    def existing_ids(self, names: list[str]) -> dict[str, str]:
        """Return {topic: its id}."""
        return {name: self.topics[name] for name in names if name in self.topics}

    def topic_config(self, _name: str) -> dict[str, str]:
        """Return what all topics have."""
        return {"cleanup.policy": "compact"}

    def names(self) -> frozenset[str]:
        """Return all topics."""
        return frozenset(self.topics)

    def delete(self, name: str) -> None:
        """Delete a topic, or a folder."""
        if name in self.refused:
            raise ConfigError("topic", name, "Kafka refuses to delete it", "let it go")
        self.done.append(f"deleted {name}")
        self.topics.pop(name, None)
        self.files.discard(name)

    # As DeletedJobs, and the cluster's files.

    def write(self, deleted: DeletedJob) -> None:
        """Record it."""
        self.done.append(f"recorded {deleted.topic_ids} {deleted.input_ids} {deleted.hosts}")

    def home(self) -> str:
        """Return the user's folder."""
        return "hdfs:///user/me"

    def facts(self, url: str) -> FileFacts | None:
        """Return whether it is there."""
        return FileFacts(1, 1) if url in self.files else None


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The parts that the command reaches."""
    made = Cluster()
    monkeypatch.setattr(job_deletion, "TopicAdmin", lambda *_: made)
    monkeypatch.setattr(job_deletion, "DeletedJobs", lambda *_: made)
    monkeypatch.setattr(job_deletion, "hadoop_files", lambda *_: contextlib.nullcontext(made))
    monkeypatch.setattr(job_deletion, "other_jobs", lambda *_: OtherJobs({}))
    monkeypatch.setattr(job, "running_job", lambda *_: None)
    monkeypatch.setattr(job_deletion, "forget_token", lambda *_: None)
    return made


def end_of(
    folders: list[JobFolder] | None = None, yarn: Job | None = None, *, is_local: bool = False
) -> JobEnd:
    """The end of a job with state that ran on nm1 and nm2; this host is nm1."""
    stream = InMemoryCoordinatorStream()
    ConfigManager(stream).replace(CONFIG, "test")
    ChangelogTopicManager(stream).write({LOG: ChangelogTopicRecord("id-l", "s")})
    InputTopicManager(stream, 1).write({SystemStream("kafka", "in"): "id-in"})
    stream.write([wire.set_task_host_assignment("Partition 0", Host("nm2"), 1)])
    UsedHostManager(stream).write(Host("nm1"), 1 << 40)  # the task has left it
    if is_local:
        ConfigManager(stream).set("job.coordinator.factory", LOCAL, "test")
    stream.catch_up()
    return JobEnd(CONFIG, stream, None, yarn, Host("nm1"), folders or [], "homeport clean")


def stated(ended: Iterator[Ended]) -> list[tuple[Kind, str, Outcome]]:
    """Kind, name and outcome of each."""
    return [(item.kind, item.name, item.outcome) for item in ended]


def test_a_plan_names_all_and_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Topics, the directory here, the coordinator stream last; and the host that is left."""
    path = store_in(tmp_path, "j-1", "id-l")
    end = end_of([JobFolder(tmp_path / "j-1", tmp_path)])
    end.look()
    assert stated(end.plan()) == [
        (Kind.TOPIC, f"kafka.{CHECKPOINTS}", Outcome.WOULD_BE),
        (Kind.TOPIC, "kafka.log", Outcome.WOULD_BE),
        (Kind.DIRECTORY, str(path), Outcome.WOULD_BE),
        (Kind.TOPIC, "kafka.__samza_coordinator_j_1", Outcome.WOULD_BE),
        (Kind.HOST, "nm2", Outcome.LEFT),
    ]
    assert cluster.done == []
    assert path.exists()


def test_the_record_comes_first_and_the_stream_last(cluster: Cluster, tmp_path: Path) -> None:
    """What knows the rest outlives it; no topic goes once another submission has begun."""
    path = store_in(tmp_path, "j-1", "id-l")
    end = end_of([JobFolder(tmp_path / "j-1", tmp_path)])
    end.look()
    end.record()
    outcomes = stated(end.carry_out(lambda: cluster.done.append("newest")))
    assert {outcome for _, _, outcome in outcomes} == {Outcome.DELETED}
    assert not path.exists()
    assert stated(end.delete_stream()) == [
        (Kind.TOPIC, "kafka.__samza_coordinator_j_1", Outcome.DELETED),
        (Kind.HOST, "nm2", Outcome.LEFT),
    ]
    assert cluster.done == [
        "recorded ('id-c', 'id-l') ('id-in',) ('nm1', 'nm2')",
        "newest",
        f"deleted {CHECKPOINTS}",
        "newest",
        "deleted log",
        "deleted __samza_coordinator_j_1",
    ]


def test_a_topic_that_kafka_refuses_to_delete_holds_up_the_stream_alone(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The others go, and the directories; once it may go, the next run finishes."""
    path = store_in(tmp_path, "j-1", "id-l")
    end = end_of([JobFolder(tmp_path / "j-1", tmp_path)])
    cluster.refused = {CHECKPOINTS}
    end.look()
    (refused, *gone) = end.carry_out(lambda: None)
    reason = "the checkpoint topic; Kafka refuses to delete it: let it go"
    assert str(refused) == f"topic kafka.{CHECKPOINTS}: left: {reason}"
    assert stated(iter(gone)) == [
        (Kind.TOPIC, "kafka.log", Outcome.DELETED),
        (Kind.DIRECTORY, str(path), Outcome.DELETED),
    ]
    stream = "kafka.__samza_coordinator_j_1"
    (held, *_) = end.delete_stream()
    assert (held.name, held.outcome) == (stream, Outcome.LEFT)
    assert "run this again, once Kafka lets all topics go" in held.reason

    cluster.refused = {stream.removeprefix("kafka.")}
    again = end_of()
    again.look()
    assert stated(again.carry_out(lambda: None)) == [
        (Kind.TOPIC, f"kafka.{CHECKPOINTS}", Outcome.DELETED)
    ]
    (held, *_) = again.delete_stream()
    assert (held.name, held.outcome) == (stream, Outcome.LEFT)
    cluster.refused = set()
    last = end_of()
    last.look()
    assert stated(last.carry_out(lambda: None)) == []
    (gone_too, *_) = last.delete_stream()
    assert gone_too.outcome is Outcome.DELETED


def test_a_deletion_that_was_cut_off_goes_on(cluster: Cluster) -> None:
    """A topic that is gone has no line, and its id is recorded all the same."""
    del cluster.topics["log"]
    end = end_of()
    end.look()
    end.record()
    assert [name for _, name, _ in stated(end.carry_out(lambda: None))] == [f"kafka.{CHECKPOINTS}"]
    assert cluster.done[0] == "recorded ('id-c', 'id-l') ('id-in',) ('nm1', 'nm2')"
    hosts = [name for kind, name, _ in stated(end.delete_stream()) if kind is Kind.HOST]
    assert hosts == ["nm1", "nm2"]  # no folder of this host is named


def _claims(monkeypatch: pytest.MonkeyPatch, end: JobEnd) -> list[int]:
    """Let the command take number 3 and the job over; return the numbers that it gives back."""
    withdrawn: list[int] = []

    @contextlib.contextmanager
    def taking_over(
        _: Config, submission: int, begun: StateReset
    ) -> Iterator[tuple[CoordinatorStream, Config]]:
        assert begun == StateReset(submission, ResetPhase.DELETING)
        StateResetManager(end.stream).write(begun)
        end.stream.catch_up()
        yield end.stream, CONFIG

    monkeypatch.setattr(delete_job_command, "taking_over", taking_over)
    monkeypatch.setattr(submission_claim, "take_number", lambda *_: 3)
    monkeypatch.setattr(submission_claim, "withdraw", lambda _, number: withdrawn.append(number))
    return withdrawn


@pytest.mark.parametrize("refused", [{CHECKPOINTS}, set[str]()])
def test_the_next_run_does_not_wait_for_one_whose_stream_stays(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, refused: set[str]
) -> None:
    """Where it goes the number is kept: nothing may begin in a stream that is about to go."""
    end = end_of()
    withdrawn = _claims(monkeypatch, end)
    cluster.refused = refused
    store: Any = end.stream
    assert delete_job_command._carried_out(store, end, as_json=False) == len(refused)
    assert withdrawn == [3] * len(refused)


def test_a_deletion_that_kafka_does_not_let_record_leaves_the_job_startable(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the user may make no topic; nothing is deleted."""
    end = end_of()
    withdrawn = _claims(monkeypatch, end)

    def refused(_: DeletedJob) -> None:
        raise ConfigError("topic", "__homeport_deleted_jobs", "Kafka refuses to make it", "")

    monkeypatch.setattr(cluster, "write", refused)
    store: Any = end.stream
    with pytest.raises(ConfigError, match="Kafka refuses to make it"):
        delete_job_command._carried_out(store, end, as_json=False)
    end.stream.catch_up()
    StateResetManager(end.stream).require_finished()
    assert (cluster.done, withdrawn) == ([], [3])


def test_a_stream_without_a_configuration_is_deleted(cluster: Cluster) -> None:
    """As a run-job leaves it that died in its first steps."""
    end = JobEnd(CONFIG, InMemoryCoordinatorStream(), None, None, Host("nm1"), [], "clean")
    end.require_at_rest()
    end.look()
    assert stated(end.carry_out(lambda: None)) == []
    assert [name for _, name, _ in stated(end.delete_stream())] == ["kafka.__samza_coordinator_j_1"]
    assert cluster.topics.keys() == {CHECKPOINTS, "log"}


def test_an_overtaken_deletion_deletes_no_topic(cluster: Cluster) -> None:
    """A run-job that is newer makes its own."""
    end = end_of()
    end.look()

    def overtaken() -> None:
        raise UnavailableError("another run-job took number 3")

    with pytest.raises(UnavailableError):
        list(end.carry_out(overtaken))
    assert cluster.topics.keys() == {CHECKPOINTS, "log"}


def test_the_changelog_that_another_job_reads_stays_with_its_directories_of_that_job(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id of a topic that stays says nothing in a folder that jobs share."""
    monkeypatch.setattr(job_deletion, "other_jobs", lambda *_: OtherJobs({"log": "x reads it"}))
    end = end_of()
    end.look()
    assert end.deleted.topic_ids == ("id-c",)
    assert end.deleted.input_ids == ("id-in", "id-l")
    assert cluster.done == []


def test_files_of_an_application_that_yarn_killed_go(cluster: Cluster) -> None:
    """Where they are; a file system that does not answer leaves a line."""
    application = application_of(CONFIG, 7, "KILLED")
    url = f"hdfs:///user/me/.skein/{application.application_id}"
    cluster.files = {url}
    end = end_of(yarn=job_at_hand(CONFIG, None, application))
    end.look()
    assert (Kind.FILES, url, Outcome.WOULD_BE) in stated(end.plan())
    assert (Kind.FILES, url, Outcome.DELETED) in stated(end.carry_out(lambda: None))
    assert cluster.files == set()


def test_a_file_system_that_does_not_answer_leaves_a_line(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest goes on."""

    def away(*_: object) -> object:
        raise UnavailableError("no yarn command")

    monkeypatch.setattr(job_deletion, "hadoop_files", away)
    end = end_of(yarn=job_at_hand(CONFIG, None, application_of(CONFIG, 7, "KILLED")))
    end.look()
    assert (Kind.FILES, "~/.skein", Outcome.LEFT) in stated(end.carry_out(lambda: None))
    assert "log" not in cluster.topics


def test_a_job_that_runs_is_not_at_rest(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """By YARN's word, or by its own answer; nor is one in a migration."""
    end_of(yarn=job_at_hand(CONFIG)).require_at_rest()
    running = end_of(yarn=job_at_hand(CONFIG, None, application_of(CONFIG)))
    with pytest.raises(ConfigError, match="runs already as application_"):
        running.require_at_rest()
    moving = end_of()
    ConfigManager(moving.stream).set("job.coordinator.factory", TO_YARN, "test")
    with pytest.raises(ConfigError, match="a migration of the job has begun"):
        moving.require_at_rest()
    monkeypatch.setattr(job, "running_job", lambda *_: "the running job, x at y")
    with pytest.raises(ConfigError, match="it is the running job, x at y; stop it: "):
        end_of().require_at_rest()
    assert cluster.done == []


def test_a_job_that_samza_runs_is_not_deleted(cluster: Cluster) -> None:
    """Its coordinator stream has the same name and form, and its application no tag."""
    samzas = replace(application_of(CONFIG, 7), tags=frozenset())
    with pytest.raises(ConfigError, match="YARN runs application_1_7"):
        end_of(yarn=job_at_hand(CONFIG, None, samzas)).require_at_rest()
    ended = replace(samzas, state="KILLED")
    end_of(yarn=job_at_hand(CONFIG, None, ended)).require_at_rest()
    assert cluster.done == []


def test_containers_of_an_application_that_yarn_ended_may_be_stopping(cluster: Cluster) -> None:
    """Until their stops are recorded; one whose AM has ended it has none left."""
    for state, limit_s in (("KILLED", 40.0), ("FAILED", 40.0), ("FINISHED", None)):
        end = end_of(yarn=job_at_hand(CONFIG, None, application_of(CONFIG, 7, state)))
        permit = ProcessorEpoch(3, 1)
        end.stream.write([processor_epoch_message(ProcessorId("0"), permit)])
        assert end.unstopped() == (Incarnation(ProcessorId("0"), 3),)
        assert end.stop_limit_s() == limit_s
        StopManager(end.stream).write(Incarnation(ProcessorId("0"), 3), "killed")
        assert end.stop_limit_s() is None
    assert end_of().stop_limit_s() is None
    assert cluster.done == []


def test_the_folder_of_run_local_is_named(cluster: Cluster, tmp_path: Path) -> None:
    """Unless the operator has named where the stores are."""
    end = end_of(is_local=True)
    end.look()
    assert (Kind.DIRECTORY, "j-1", Outcome.LEFT) in stated(end.plan())
    end = end_of([JobFolder(tmp_path / "j-1", tmp_path)], is_local=True)
    end.look()
    assert (Kind.DIRECTORY, "j-1", Outcome.LEFT) not in stated(end.plan())
    assert cluster.done == []


def test_other_jobs_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of others the first use of each topic counts; the job's own stream is left out."""
    names = [f"__samza_coordinator_{name}_1" for name in ("j", "a", "b", "broken")]
    cluster = Cluster(dict.fromkeys([*names, "in"], "id"))
    monkeypatch.setattr(job_deletion, "TopicAdmin", lambda *_: cluster)

    def uses(_system: SystemConfig, topic: str) -> list[tuple[str, str]]:
        if "broken" in topic:
            raise UnavailableError("damaged")
        return [("in", f"use by {topic}")]

    monkeypatch.setattr(job_deletion, "_uses", uses)
    found = other_jobs({"h:1": SystemConfig.of(CONFIG, "kafka")}, names[0])
    assert found == OtherJobs({"in": f"use by {names[1]}"}, (names[3],))


def test_the_command_for_a_host_has_no_secret() -> None:
    """Overrides are given on, their secrets masked."""
    named = NamedJob("my job.properties", ["job.id=2", "systems.k.consumer.sasl.password=geheim"])
    command = clean_command_of(named)
    assert command.startswith("homeport clean '--config-path=my job.properties' --config=job.id=2 ")
    assert command.endswith(" --apply")
    assert "geheim" not in command


def test_folders_of_this_host_are_those_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the option or the variable; without one none is looked for."""
    monkeypatch.delenv("LOGGED_STORE_BASE_DIR", raising=False)
    job = JobConfig.of(CONFIG)
    assert own_folders_of(job, None) == []
    assert own_folders_of(job, [tmp_path]) == [JobFolder(tmp_path / "j-1", tmp_path)]
