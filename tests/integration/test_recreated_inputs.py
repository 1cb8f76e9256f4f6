"""An input that was deleted and recreated between two submissions, before a real Kafka and YARN."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import stream_containers
import yarn_jobs
from confluent_kafka.admin import AdminClient, NewTopic
from suites import long

from homeport.appmaster.job_model.input_acceptance import InputAcceptance
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.topics import InputTopicManager

BEGIN = {"job.input.recreated": "begin"}


@pytest.fixture
def job(kafka: str, tmp_path: Path) -> Iterator[stream_containers.Job]:
    """A job of one container, whose stream says which topic its input is."""
    made = stream_containers.make_job(kafka, tmp_path, stream_containers.COUNTER, {})
    with contextlib.closing(made):
        accept(made, made.config, 1)
        yield made


def accept(job: stream_containers.Job, config: Config, submission: int) -> list[str]:
    """A driver of that submission takes the inputs as they are. Returns its messages."""
    with job.coordinator_stream() as stream:
        inputs = InputAcceptance(config, stream)
        stated = inputs.check()
        inputs.accept(submission)
    return stated


def counted(job: stream_containers.Job) -> int:
    """How often the word was counted, by the state."""
    return int.from_bytes(job.table("changelog").get("word") or b"", "big")


@pytest.mark.parametrize("default", [long("oldest"), "upcoming"])
def test_a_longer_topic_is_begun_where_the_key_says(
    job: stream_containers.Job, default: str
) -> None:
    """From its first record, or with what comes; the state stays; no container goes back again."""
    system = f"systems.kafka.streams.{job.topic('in')}.samza.offset.default"
    config = job.model.config.merged({system: default, **BEGIN})
    job.served.backend.model = type(job.model)(config, job.model.containers)
    word = (0, b"word", b"")
    first = job.start(1)
    job.report(first, 1)
    job.produce([word] * 20)
    job.until(lambda: job.processed() == 20, first)
    assert first.stop() == 143
    job.make_anew("in", [(0, b"word", b"")] * 60)

    with pytest.raises(ConfigError, match=r"job\.input\.recreated = 'refuse': input kafka\."):
        accept(job, job.config, 2)
    with job.coordinator_stream() as stream:
        found = InputAcceptance(config, stream).check()
        assert stream.catch_up() == ()
    (line,) = accept(job, config, 2)
    assert found == [line]
    assert "it is begun where samza.offset.default says, and the state stays" in line

    skipped = 60 if default == "upcoming" else 0
    second = job.start(3, fence=[1])
    job.report(second, 2)
    job.produce([word] * 5)
    job.until(lambda: counted(job) == 20 + 60 + 5 - skipped, second)
    assert second.stop() == 143
    third = job.start(4, fence=[3])
    job.report(third, 3)
    job.produce([word])
    job.until(lambda: counted(job) == 20 + 60 + 6 - skipped, third)
    with job.coordinator_stream() as stream:
        topic = InputTopicManager(stream).read()[SystemStream("kafka", job.topic("in"))]
    admin = TopicAdmin(SystemConfig.of(config, "kafka"))
    assert topic.topic_id == admin.topic_ids([job.topic("in")])[job.topic("in")]
    assert topic.submission == 2
    assert topic.floor is not None
    assert 0 < topic.floor <= admin.end_offset(TaskConfig.of(config).checkpoint_topic, 0)


def test_a_submission_is_refused_or_begins_the_new_topic(
    make_job: Callable[[str], yarn_jobs.Job],
) -> None:
    """Refused in one line that names the key; with it, all of the new input joins the state."""
    job = make_job("renewed")
    job.values["job.container.count"] = "1"
    topic = f"{job.name}-in"
    job.produce(60)
    job.run()
    job.counts_all()
    job.kill()
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.delete_topics([topic])[topic].result(30)
    yarn_jobs.wait_for(lambda: topic not in admin.list_topics(timeout=10).topics, job)
    admin.create_topics([NewTopic(topic, yarn_jobs.PARTITIONS, 1)])[topic].result(30)
    job.produce(600)

    refused = job.call("run")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.startswith(
        f"error: job.input.recreated = 'refuse': input kafka.{topic} was deleted and recreated"
    )
    begun = job.call("run", "job.input.recreated=begin")
    assert begun.returncode == 0, begun.stderr
    assert f"warning: input kafka.{topic} was deleted and recreated" in begun.stderr
    job.learn(begun.stdout)
    job.counts_all()
    (stated,) = job.get("v1/status")["configuration"]["inputs_begun_anew"]
    assert (stated["input"], stated["submission"]) == (f"kafka.{topic}", 2)
    (noted,) = job.driver_events("input-begun-anew")
    assert noted["input"] == f"kafka.{topic}"
    job.kill()
    job.judge_history()
