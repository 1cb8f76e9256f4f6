"""New topics that match a regular expression become inputs of a running job, or are refused."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from live_jobs import FILE, IN, STORE, Job

from homeport.appmaster.job_model import live_job_coordinator
from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE, ConfigManager
from homeport.job_coordinator.model.job_model import SystemStream

_REGEX = "job.config.rewriter.re.regex"
_WITH = FILE.merged(
    {
        **STORE,
        "job.config.rewriters": "re",
        "job.config.rewriter.re.class": "org.apache.samza.config.RegExTopicGenerator",
        _REGEX: "in-.*",
        "job.config.rewriter.re.system": "kafka",
        "job.config.rewriter.re.config.samza.offset.default": "oldest",
    }
)
A, B, ODD = (SystemStream("kafka", f"in-{name}") for name in ("a", "b", "odd"))


class _Topics(Job):
    """A job with state, of six tasks, and topics that come while it runs."""

    def __init__(self, folder: Path, file: Config = _WITH) -> None:
        super().__init__(folder, file)
        self.watch = self.topic_watch()

    def come(self, **counts: int) -> None:
        """Topics are there, with so many partitions."""
        self.existing |= {f"in-{name}" for name in counts} | {"other", "__in-c"}
        self.others |= {SystemStream("kafka", f"in-{n}"): count for n, count in counts.items()}

    def written(self) -> dict[str, str]:
        """What is in the stream, after one look."""
        self.watch.look(self.job_models.model)
        self.stream.catch_up()
        return dict(ConfigManager(self.stream).read())


def test_a_new_topic_that_matches_is_written_as_an_input(tmp_path: Path) -> None:
    """With its rewriter's properties, once; a deployment replaces it, as it finds it itself."""
    job = _Topics(tmp_path)
    assert job.written() == {}
    job.come(a=6)
    found = job.written()
    offset = "systems.kafka.streams.in-a.samza.offset.default"
    assert found == {"task.inputs": f"{IN},{A}", offset: "oldest"}
    assert not ConfigManager(job.stream).written()
    job.come(b=3)
    assert job.written()["task.inputs"] == f"{IN},{A},{B}"


def test_one_that_does_not_fit_is_refused_in_one_line_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are taken; the line names topic, key, rule and remedy."""
    job = _Topics(tmp_path)
    job.come(a=6, odd=7)
    for _ in range(3):
        assert job.written()["task.inputs"] == f"{IN},{A}"
    (line,) = [r.message for r in caplog.records if r.levelno == logging.WARNING]
    assert line.startswith(f"{ODD} matches {_REGEX}, and becomes no input: task.inputs = ")
    assert "give it 6 partitions, as many as the job has tasks" in line


def test_a_refusal_lasts_until_the_topic_fits_or_is_gone(tmp_path: Path) -> None:
    """Or until the inputs are set by hand."""
    job = _Topics(tmp_path)

    def refused() -> tuple[str, ...]:
        return job.watch.look(job.job_models.model)

    assert refused() == ()
    job.come(b=7, odd=7)
    assert [line.partition(" ")[0] for line in refused()] == [str(B), str(ODD)]
    job.come(b=6)
    assert [line.partition(" ")[0] for line in refused()] == [str(ODD)]
    job.existing.remove("in-odd")
    assert refused() == ()


def test_the_status_has_the_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays while Kafka does not answer, and goes with the topic."""
    monkeypatch.setattr(live_job_coordinator, "_POLL_S", 0.01)
    job = Job(tmp_path, _WITH.merged({"job.coordinator.monitor-input-regex.frequency.ms": "1"}))
    job.existing |= {"in-odd"}
    job.others |= {ODD: 7}

    async def scene() -> None:
        await job.until(lambda: bool(job.live.shown().topics_refused))
        (line,) = job.live.shown().topics_refused
        assert line.startswith(f"{ODD} matches {_REGEX}, and becomes no input: task.inputs = ")
        job.is_away = True
        await job.some_rounds()
        assert job.live.shown().topics_refused == (line,)
        job.existing.remove("in-odd")
        job.is_away = False
        await job.until(lambda: not job.live.shown().topics_refused)

    job.play(scene)


def test_inputs_that_were_set_by_hand_stay(tmp_path: Path) -> None:
    """As at a submission, which lays them above what the expression finds."""
    job = _Topics(tmp_path)
    record = wire.set_config("task.inputs", str(IN))._replace(source=WRITER_SOURCE)
    job.stream.write([record])
    job.stream.catch_up()
    job.come(a=6, odd=7)
    assert job.written() == {"task.inputs": str(IN)}
    assert job.watch.look(job.job_models.model) == ()


def test_an_expression_that_is_none_is_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The job goes on."""
    job = _Topics(tmp_path, _WITH.merged({_REGEX: "("}))
    assert job.written() == {}
    assert "no new topic becomes an input: " + _REGEX in caplog.text


def test_the_running_job_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As what ``config set`` writes; where Kafka does not answer it looks again."""
    monkeypatch.setattr(live_job_coordinator, "_POLL_S", 0.01)
    job = Job(tmp_path, _WITH.merged({"job.coordinator.monitor-input-regex.frequency.ms": "1"}))
    job.existing |= {"in-a"}
    job.others |= {A: 6}
    job.is_away = True

    def is_taken() -> bool:
        job.is_away = job.rounds < 3
        job.stream.catch_up()
        job.live.heard(ConfigManager(job.stream).deployed())
        return bool(job.changes)

    async def scene() -> None:
        await job.until(is_taken)

    job.play(scene)
    assert A in job.changes[-1].model.partition_counts()


def test_a_damaged_record_of_a_task_is_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What the tasks have is not known: nothing is taken, and the job goes on."""
    job = _Topics(tmp_path)
    job.come(a=6)
    job.stream.write([CoordinatorStreamMessage("set-state-fact", "partitions 0", None)])
    job.stream.write([CoordinatorStreamMessage("set-changelog", "Partition 0", {"a": "b"})])
    job.stream.catch_up()
    assert job.written() == {}
    assert f"{A} matches {_REGEX}, and becomes no input: " in caplog.text
