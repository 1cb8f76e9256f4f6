"""``homeport checkpoint set``: its arguments, its fences, and what it looks at again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from nodes_in_memory import NodesInMemory
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.host import checkpoint_change, job_on_host
from homeport.cli.host.checkpoint_change import Place, changed
from homeport.cli.host.checkpoint_commands import chosen_partition, milliseconds
from homeport.cli.host.job_on_host import RecordedJob
from homeport.cli.job.job_view import JobView
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.sections import JobConfig, TaskConfig
from homeport.container.kafka.checkpoints import Checkpoint
from homeport.container.progress.checkpoint import Change
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    ProcessorEpoch,
    Submission,
)
from homeport.job_coordinator.metadata.lifecycle import StopManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.job_coordinator.model.job_model import JobModel, SystemStreamPartition, TaskModel
from homeport.job_coordinator.standalone.plan import Registration, next_plan


def test_exactly_one_option_gives_the_place() -> None:
    """Offset 0 is one like any other."""
    assert Place.of(offset=0, earliest=False, latest=False, at_ms=None).offset == 0
    latest = Place.of(offset=None, earliest=False, latest=True, at_ms=None)
    assert latest == Place(None, is_earliest=False, at_ms=None)


@pytest.mark.parametrize(("offset", "earliest"), [(None, False), (7, True)])
def test_no_place_or_two_places_are_refused(offset: int | None, *, earliest: bool) -> None:
    """Their meaning is not clear."""
    with pytest.raises(ConfigError, match="exactly one of --offset, --earliest"):
        Place.of(offset=offset, earliest=earliest, latest=False, at_ms=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("1372939200000", 1_372_939_200_000),
        ("2013-07-04T12:00:00+00:00", 1_372_939_200_000),
        ("2013-07-04T14:00:00+02:00", 1_372_939_200_000),
    ],
)
def test_a_time_is_milliseconds_or_iso_8601(text: str | None, expected: int | None) -> None:
    """With its time zone."""
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["yesterday", "2013-07-04T12:00:00", "-1", ""])
def test_a_time_of_nowhere_is_refused(text: str) -> None:
    """Without a zone it would be another one on each machine."""
    with pytest.raises(ConfigError, match="with a time zone"):
        milliseconds(text)


def test_a_partition_is_one_of_the_tasks() -> None:
    """Topics have dots in their names, so the whole name is compared."""
    ssp = SystemStreamPartition("kafka", "a.b", 3)
    task = TaskModel(TaskName("Partition 3"), (ssp,), 3)
    assert chosen_partition(task, "kafka.a.b.3") == ssp
    with pytest.raises(ConfigError, match=r"the task reads kafka\.a\.b\.3"):
        chosen_partition(task, "kafka.a.b.4")


P, Q = ProcessorId("p"), ProcessorId("q")


class _Written:
    """The job as ``write`` sees it, and what it does; ``when_written`` then happens too."""

    def __init__(self, patch: pytest.MonkeyPatch, factory: str) -> None:
        self.stream, self.nodes = InMemoryCoordinatorStream(), NodesInMemory()
        self.done: list[str] = []
        self.when_written: Callable[[], object] = list
        ConfigManager(self.stream).set("job.coordinator.factory", factory, "test")
        self.stream.catch_up()
        view = JobView(Config({"job.name": "j"}), "topic", self.stream, None)
        named = {"job.name": "j", "job.default.system": "kafka", "job.coordinator.factory": factory}
        config = Config(named)
        none = JobModel(Config({}), {})
        self.job = RecordedJob(view, config, JobConfig.of(config), TaskConfig.of(config), {}, none)
        patch.setattr(RecordedJob, "systems", lambda _: {"kafka": None})
        patch.setattr(job_on_host, "handover_nodes", lambda *_, **__: nullcontext(self.nodes))
        patch.setattr(checkpoint_change, "fence", lambda _, name: self.done.append(name))
        patch.setattr(checkpoint_change, "write_checkpoint", self._write)
        patch.setattr(checkpoint_change, "running_job", lambda *_: None)

    def _write(self, *_: object) -> None:
        self.done.append("written")
        self.when_written()

    def version(self, members: Mapping[ProcessorId, tuple[TaskName, ...]]) -> None:
        kept = self.nodes.kept
        there = [Registration(n, p, Host("h")) for n, p in enumerate(members, 1)]
        plan = next_plan(kept.plan, there, members, kept.fenced)
        self.nodes.kept = replace(kept, version=plan.version, plan=plan)

    def report(self, processor: ProcessorId, generation: int) -> None:
        EpochManager(self.stream).write_fenced(processor, FenceReport(generation))
        self.stream.catch_up()

    def write(self) -> list[str]:
        """The checkpoint is set; the ids that are fenced, and the record, in order."""
        checkpoint_change.write(self.job, TaskModel(TaskName("a"), (), 0), Checkpoint({}))
        return self.done


def _named(processor: ProcessorId, epoch: int) -> str:
    return transactional_id("j", "1", Incarnation(processor, epoch))


def test_under_zookeeper_the_newest_version_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its members, and those before that none of them has reported as fenced."""
    job = _Written(monkeypatch, "zookeeper")
    job.version({P: (TaskName("a"),)})
    job.nodes.kept = replace(job.nodes.kept, fenced={P: 1})
    job.version({Q: (TaskName("a"),)})
    job.report(P, 1)
    assert job.write() == [_named(P, 1), _named(Q, 2), "written"]


def test_a_job_of_run_local_is_fenced_by_its_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is found by no tool."""
    job = _Written(monkeypatch, "local")
    job.report(P, 3)
    assert job.write() == [_named(P, 3), "written"]


def test_a_job_of_yarn_is_fenced_by_its_permits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those without a record of their stop."""
    job = _Written(monkeypatch, "yarn")
    epochs = EpochManager(job.stream)
    write_permit(epochs, P, ProcessorEpoch(5, 1))
    write_permit(epochs, Q, ProcessorEpoch(6, 1))
    StopManager(job.stream).write(Incarnation(Q, 6), "killed")
    job.report(P, 5)
    assert job.write() == [_named(P, 5), "written"]


@pytest.mark.parametrize(
    "what", ["version", "registered", "report", "away", "permit", "submission", "answers"]
)
def test_a_start_while_a_checkpoint_is_set_is_reported(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """ZooKeeper is looked at once more; what it does not answer is not known."""
    job = _Written(monkeypatch, "zookeeper")
    job.version({P: (TaskName("a"),)})
    epochs = EpochManager(job.stream)

    def away() -> Any:  # noqa: ANN401 - it raises
        raise UnavailableError("ZooKeeper does not answer")

    def registered() -> None:
        job.nodes.kept = replace(job.nodes.kept, processors=(Q,))

    job.when_written = {
        "version": lambda: job.version({Q: (TaskName("a"),)}),
        "registered": registered,
        "report": lambda: job.report(Q, 1),
        "permit": lambda: write_permit(epochs, P, ProcessorEpoch(1, 1)),
        "submission": lambda: epochs.write_submission(Submission(9)),
        "answers": lambda: monkeypatch.setattr(checkpoint_change, "running_job", lambda *_: job),
        "away": lambda: monkeypatch.setattr(job.nodes, "read", away),
    }[what]
    with pytest.raises(UnavailableError, match=r"the job was started while .* its processors, and"):
        job.write()


def test_a_checkpoint_is_set_in_no_older_copy_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The incarnations of its lost versions are in no list. Before the first version none is."""
    job = _Written(monkeypatch, "zookeeper")
    assert job.write() == ["written"]
    job.version({P: (TaskName("a"),)})
    job.report(Q, 2)
    with pytest.raises(ConfigError, match="or an older one than has run"):
        job.write()


def test_a_job_whose_processor_is_registered_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is changed."""
    job = _Written(monkeypatch, "zookeeper")
    checkpoint_change.require_not_running(job.job)
    job.nodes.kept = replace(job.nodes.kept, processors=(Q,))
    with pytest.raises(ConfigError, match="these processors are registered in ZooKeeper: q; stop"):
        checkpoint_change.require_not_running(job.job)


def test_a_checkpoint_is_set_in_no_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the incarnations that may write are in the stream, half in ZooKeeper."""
    job = _Written(monkeypatch, "migrating-to-yarn")
    with pytest.raises(ConfigError, match="finish it by homeport migrate --to=yarn"):
        checkpoint_change.require_not_running(job.job)


ONE, OTHER = (SystemStreamPartition("kafka", "in", number) for number in (0, 1))


def test_a_change_says_where_the_partition_went_on_before() -> None:
    """The other partitions stay; without a checkpoint it went on nowhere."""
    first = changed(Checkpoint({ONE: 139, OTHER: 5}), ONE, 7)
    assert first == Checkpoint({ONE: 6, OTHER: 5}, (Change(ONE, 140, 7),))
    assert changed(Checkpoint({}), ONE, 0) == Checkpoint({ONE: -1}, (Change(ONE, None, 0),))


def test_changes_that_no_container_has_seen_add_up() -> None:
    """Of one partition the last counts, from where it stood before the first."""
    first = changed(Checkpoint({ONE: 139, OTHER: 5}), ONE, 7)
    both = changed(first, OTHER, 0)
    assert both.changes == (Change(ONE, 140, 7), Change(OTHER, 6, 0))
    again = changed(both, ONE, 100)
    assert again == Checkpoint({ONE: 99, OTHER: -1}, (Change(ONE, 140, 100), Change(OTHER, 6, 0)))
