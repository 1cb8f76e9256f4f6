"""Which applications on YARN are a job's, and the order to drain one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from jobs_at_hand import JobAtHand, application_of, job_at_hand, written
from small_jobs import KEYS
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.yarn.resource_manager_rest import APPLICATION_TAG, Application
from homeport.appmaster.yarn.submission import application_name, job_tag
from homeport.cli.yarn.job import order_drain, write_order
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.tuning import Tuning
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import AmEpoch, EpochManager, Rank, Submission

MINE = Config({**KEYS, "job.name": "etl_daily"})
YOURS = Config({**KEYS, "job.name": "etl", "job.id": "daily_1"})


@dataclass(frozen=True)
class _Away(JobAtHand):
    def has_stream(self) -> bool:
        raise UnavailableError("Kafka is away")


def _last(
    *known: Application, stream: InMemoryCoordinatorStream | None = None, is_away: bool = False
) -> Application | None:
    """The last application of ``MINE`` on a YARN that knows these."""
    job = job_at_hand(MINE, stream, *known)
    return (_Away(MINE, job.yarn, MINE) if is_away else job).last_application()


def _untagged(number: int) -> Application:
    """An older version submitted it, without a job's tag."""
    return replace(application_of(MINE, number), tags=frozenset({APPLICATION_TAG}))


def _naming(submission: str | None = None, attempt: str | None = None) -> InMemoryCoordinatorStream:
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
    assert _last(application_of(YOURS, 1, "FINISHED"), application_of(YOURS, 2)) is None
    mine = application_of(MINE, 1, "FINISHED")
    assert _last(mine, application_of(YOURS, 2)) == mine
    running = application_of(MINE, 3)
    assert _last(running, application_of(MINE, 4, "FINISHED"), application_of(YOURS, 5)) == running


def test_an_application_without_a_tag_is_the_jobs_if_the_stream_names_it() -> None:
    """As its submission's, or as its last attempt's while run-job still waits for the AM."""
    old, stranger = _untagged(1), _untagged(2)
    assert _last(old, stranger, stream=_naming(old.application_id)) == old
    assert _last(old, stranger, stream=_naming(attempt=old.application_id)) == old
    assert _last(old, stream=_naming()) is None
    assert _last(old) is None


def test_kafka_is_queried_only_where_tags_do_not_decide() -> None:
    """A job that runs is found, and one that never ran is not, while Kafka is away."""
    mine = application_of(MINE, 1)
    assert _last(mine, _untagged(2), is_away=True) == mine
    ended = application_of(MINE, 1, "FINISHED")
    assert _last(ended, is_away=True) == ended
    assert _last(application_of(YOURS, 2), is_away=True) is None
    with pytest.raises(UnavailableError, match="Kafka is away"):
        _last(ended, _untagged(2), is_away=True)


def test_a_job_that_runs_is_not_submitted_again() -> None:
    """Another job of its name on YARN is no reason to refuse it."""
    stream = _naming()
    job_at_hand(MINE, None, application_of(YOURS, 1)).require_not_running(stream)
    job_at_hand(MINE, None, application_of(MINE, 1, "FINISHED")).require_not_running(stream)
    with pytest.raises(ConfigError, match="runs already as application_1_2"):
        job_at_hand(MINE, None, application_of(MINE, 2)).require_not_running(stream)


FILE = Config({"job.name": "j", "task.commit.ms": "5"})


def test_the_order_reaches_running_containers_and_ends_with_the_deployment() -> None:
    """It restarts none; the next run-job begins without it."""
    stream = InMemoryCoordinatorStream()
    manager = ConfigManager(stream)
    manager.replace(FILE, "job-runner")
    assert write_order(stream)
    stream.catch_up()
    ordered = manager.read()
    assert Tuning.of(ordered).drains
    diff = ConfigDiff.between(FILE, ordered)
    assert diff == ConfigDiff(retunes_containers=("job.drain",))
    manager.replace(FILE, "job-runner")
    stream.catch_up()
    assert manager.read() == FILE


def test_a_job_with_a_repartition_is_not_ordered_to_drain() -> None:
    """The running job would refuse the order, and never end."""
    stream = InMemoryCoordinatorStream()
    own = {"task.repartition.x": "inputs", "job.default.system": "kafka"}
    ConfigManager(stream).replace(FILE.merged(own), "job-runner")
    written_before = len(stream.log)
    with pytest.raises(ConfigError, match="the job has the repartition 'x', and no container kn"):
        write_order(stream)
    assert len(stream.log) == written_before


def test_only_a_job_that_runs_is_drained() -> None:
    """Else there is one line; the answer says how to wait for the end."""
    config, stream = Config(KEYS), InMemoryCoordinatorStream()
    with pytest.raises(UnavailableError, match="is not running: there is nothing to drain"):
        order_drain(job_at_hand(config, stream, application_of(config, state="FINISHED")))
    job = job_at_hand(config, stream, application_of(config))
    assert order_drain(job).startswith("ordered application_1_1 to drain")
    again = order_drain(job)
    assert again.startswith("application_1_1 drains already, by an earlier order; it ends by")
    assert len(stream.log) == 1


def test_an_order_that_was_given_by_hand_is_one() -> None:
    """The job drains already: nothing is refused, and nothing written."""
    stream = written(job__drain="true")
    assert not write_order(stream)
    assert len(stream.log) == 1


def test_a_key_that_was_set_by_hand_stands_above_the_order() -> None:
    """One line says how to take it back; nothing is written."""
    stream = written(job__drain="false")
    with pytest.raises(
        ConfigError, match=r"job\.drain.*take it back: homeport config set job\.drain --delete"
    ):
        write_order(stream)
    assert len(stream.log) == 1
