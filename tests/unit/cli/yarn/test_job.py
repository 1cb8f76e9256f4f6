"""Which applications on YARN are the job's; another job may have its name there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from homeport.appmaster.yarn.resource_manager_rest import (
    APPLICATION_TAG,
    Application,
    ResourceManagerRest,
)
from homeport.appmaster.yarn.submission import application_name, job_tag
from homeport.cli.yarn.job import Job
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.epochs import AmEpoch, EpochManager, Rank, Submission

KAFKA = {"job.default.system": "kafka", "systems.kafka.consumer.bootstrap.servers": "b:1"}
MINE = Config({"job.name": "etl_daily", **KAFKA})
YOURS = Config({"job.name": "etl", "job.id": "daily_1", **KAFKA})


def application(number: int, config: Config | None, state: str = "RUNNING") -> Application:
    """An application of that job; None: an older version submitted it, without a job's tag."""
    tags = frozenset({APPLICATION_TAG, *([job_tag(config)] if config else [])})
    name = application_name(MINE)
    return Application(f"application_1_{number}", name, state, "", "", "", "", number, tags)


class Yarn(ResourceManagerRest):
    """A ResourceManager that knows these applications."""

    def __init__(self, *known: Application) -> None:
        super().__init__((), "")
        self.known = known

    def applications(self, name: str) -> tuple[Application, ...]:
        """Those of that name."""
        return tuple(a for a in self.known if a.name == name)


class OneJob(Job):
    """A job whose coordinator stream is at hand; None: its Kafka is away."""

    streams: tuple[InMemoryCoordinatorStream | None, ...] = ()

    def has_stream(self) -> bool:
        """Whether there is one."""
        if None in self.streams:
            raise UnavailableError("Kafka is away")
        return bool(self.streams)

    @contextlib.contextmanager
    def stream(self) -> Iterator[InMemoryCoordinatorStream]:  # type: ignore[override]  # no Kafka
        """It, read to its head."""
        (stream,) = self.streams
        assert stream is not None
        stream.catch_up()
        yield stream


def last(
    *known: Application, streams: tuple[InMemoryCoordinatorStream | None, ...] = ()
) -> Application | None:
    """The last application of ``MINE`` on a YARN that knows these."""
    job = OneJob(MINE, Yarn(*known), MINE)
    object.__setattr__(job, "streams", streams)
    return job.last_application()


def naming(submission: str | None = None, attempt: str | None = None) -> InMemoryCoordinatorStream:
    """A coordinator stream that names these applications."""
    stream = InMemoryCoordinatorStream()
    epochs = EpochManager(stream)
    epochs.write_submission(Submission(3, submission))
    if attempt:
        epochs.write_am_epoch(AmEpoch(Rank(3, attempt, 1)))
    return stream


def test_two_jobs_of_one_name_on_yarn_have_two_tags() -> None:
    """``etl_daily`` with id 1, and ``etl`` with id ``daily_1``; tags as YARN keeps them."""
    assert application_name(MINE) == application_name(YOURS) == "etl_daily_1"
    tags = {job_tag(MINE), job_tag(YOURS), job_tag(MINE.merged({"job.name": "Etl_Daily"}))}
    assert len(tags) == 3
    assert all(len(tag) <= 100 and tag == tag.lower() and tag.isascii() for tag in tags)


def test_an_application_of_another_job_is_not_the_jobs() -> None:
    """Neither the one that runs, nor one that has ended."""
    assert last(application(1, YOURS, "FINISHED"), application(2, YOURS)) is None
    mine = application(1, MINE, "FINISHED")
    assert last(mine, application(2, YOURS)) == mine
    running = application(3, MINE)
    assert last(running, application(4, MINE, "FINISHED"), application(5, YOURS)) == running


def test_an_application_without_a_tag_is_the_jobs_if_the_stream_names_it() -> None:
    """As its submission's, or as its last attempt's while run-job still waits for the AM."""
    old, stranger = application(1, None), application(2, None)
    assert last(old, stranger, streams=(naming(old.application_id),)) == old
    assert last(old, stranger, streams=(naming(attempt=old.application_id),)) == old
    assert last(old, streams=(naming(),)) is None
    assert last(old) is None


def test_kafka_is_queried_only_where_tags_do_not_decide() -> None:
    """A job that runs is found, and one that never ran is not, while Kafka is away."""
    mine = application(1, MINE)
    assert last(mine, application(2, None), streams=(None,)) == mine
    ended = application(1, MINE, "FINISHED")
    assert last(ended, streams=(None,)) == ended
    assert last(application(2, YOURS), streams=(None,)) is None
    with pytest.raises(UnavailableError, match="Kafka is away"):
        last(ended, application(2, None), streams=(None,))


def test_a_job_that_runs_is_not_submitted_again() -> None:
    """Another job of its name on YARN is no reason to refuse it."""
    stream = naming()
    Job(MINE, Yarn(application(1, YOURS)), MINE).require_not_running(stream)
    Job(MINE, Yarn(application(1, MINE, "FINISHED")), MINE).require_not_running(stream)
    with pytest.raises(ConfigError, match="runs already as application_1_2"):
        Job(MINE, Yarn(application(2, MINE)), MINE).require_not_running(stream)
