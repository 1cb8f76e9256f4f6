"""Two jobs that have equal topic names in Samza, before a real Kafka and YARN."""

from __future__ import annotations

import re
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from forked_tool import MODULE, RUN_JOB, WRITER, run_about
from job_configs import job_config
from recorded_jobs import record_job
from yarn_jobs import Job

from homeport.cli.yarn import state_reset
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec
from homeport.job_coordinator.model.job_model import SystemStream


@dataclass
class Neighbours:
    """``mine`` has run; ``yours`` has another name, and the same coordinator stream."""

    mine: Config
    yours: Config
    store: CoordinatorStreamStore
    folder: Path

    def call(self, program: str, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """The program, asked about ``yours``."""
        path = self.folder / "yours.properties"
        environment = {"HADOOP_CONF_DIR": str(self.folder), "HOME": str(self.folder)}
        return run_about(self.yours, path, words, environment, module=program)

    def assert_refused(self, error: str) -> None:
        """One line that names both jobs and no reset; the stream has not one record more."""
        name, other = self.yours["job.name"], self.mine["job.name"]
        assert re.match(f"job.name = '{name}': .*job.name = '{other}'.*; choose another", error)
        assert "\n" not in error
        assert "reset" not in error
        assert self.store.catch_up() == ()


@pytest.fixture
def neighbours(kafka: str, tmp_path: Path) -> Iterator[Neighbours]:
    """Both have state, and changelogs of their own."""
    unique = uuid.uuid4().hex[:12]
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.webapp.address</name>"
        "<value>127.0.0.1:1</value></property></configuration>"
    )
    mine = job_config(
        kafka,
        {
            "job.name": f"names_{unique}",
            "task.inputs": f"kafka.in-{unique}",
            "stores.s.factory": "rocksdb",
            "stores.s.key.serde": "string",
            "stores.s.msg.serde": "string",
            "stores.s.changelog": f"kafka.mine-{unique}",
            "yarn.package.path": str(tmp_path),
        },
    )
    yours = mine.merged(
        {"job.name": f"names-{unique}", "stores.s.changelog": f"kafka.yours-{unique}"}
    )
    system = SystemConfig.of(mine, "kafka")
    admin = TopicAdmin(system)
    admin.create(f"in-{unique}", 2, 1, {})
    admin.ensure(coordinator_topic_spec(JobConfig.of(mine)))
    model = calculate_job_model(mine, {SystemStream("kafka", f"in-{unique}"): 2}, NOTHING)
    topic = JobConfig.of(mine).coordinator_topic
    with CoordinatorStreamStore(system, topic, source="test") as store:
        store.bootstrap()
        record_job(store, model)
        yield Neighbours(mine, yours, store, tmp_path)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (RUN_JOB, ()),
        (RUN_JOB, ("--reset-state",)),
        (WRITER, ("--type=set-config", "--key=task.commit.ms", "--value=1")),
        (MODULE, ("config", "get")),
        (MODULE, ("config", "set", "task.commit.ms", "1")),
        (MODULE, ("config", "diff")),
        (MODULE, ("checkpoint", "show")),
        (MODULE, ("state", "ls", "--base=/tmp")),
        (MODULE, ("clean", "--base=/tmp")),
        (MODULE, ("delete-job",)),
        (MODULE, ("delete-job", "--apply")),
        (MODULE, ("move", "0", "nm1")),
        (MODULE, ("restart", "0")),
        (MODULE, ("locality",)),
        (MODULE, ("job-model",)),
        (MODULE, ("coordinator-stream", "show")),
        (MODULE, ("coordinator-stream", "tail")),
        (MODULE, ("explain", "0")),
        (MODULE, ("status",)),
        (MODULE, ("what-if", "--host=nm1")),
    ],
)
def test_no_tool_touches_the_stream_of_another_job(
    neighbours: Neighbours, program: str, words: tuple[str, ...]
) -> None:
    """It is refused in one line before anything is shown, written or deleted."""
    done = neighbours.call(program, words)
    assert (done.returncode, done.stdout) == (1, "")
    *notes, error = done.stderr.splitlines()
    assert all(note.startswith("from ") for note in notes)
    assert error.startswith("error: ")
    neighbours.assert_refused(error.removeprefix("error: "))


def test_a_reset_that_was_begun_all_the_same_deletes_nothing(neighbours: Neighbours) -> None:
    """Also one that has passed the checks of run-job: the stream is read before it is written."""
    topic = neighbours.mine["stores.s.changelog"].removeprefix("kafka.")
    admin = TopicAdmin(SystemConfig.of(neighbours.mine, "kafka"))
    admin.create(topic, 2, 1, {"cleanup.policy": "compact"})
    before = admin.topic_ids([topic])
    with pytest.raises(ConfigError) as caught:
        state_reset.reset(neighbours.yours, None, 1, "job-runner", lambda: None)
    neighbours.assert_refused(str(caught.value))
    assert admin.topic_ids([topic]) == before


def test_a_job_of_the_same_name_is_let_in(neighbours: Neighbours) -> None:
    """Every tool works on the job's own stream as before."""
    neighbours.yours = neighbours.mine
    done = neighbours.call(MODULE, ("coordinator-stream", "show", "--key=job.name"))
    assert done.returncode == 0, done.stderr
    assert f"job.name = {neighbours.mine['job.name']}" in done.stdout


@pytest.mark.long
def test_of_two_jobs_with_one_name_on_yarn_each_has_its_own_status_and_end(
    make_job: Callable[[str], Job],
) -> None:
    """``twin_daily`` with id 1 and ``twin`` with id ``daily_1`` are both ``twin_daily_1`` there.

    While the first runs, the second is not running, and can be run; it ends without the first.
    """
    first, second = make_job("twin_daily"), make_job("twin")
    second.values["job.id"] = "daily_1"
    for job in (first, second):
        job.values["job.container.count"] = "1"
        job.produce(10)
    first.run()
    assert second.call("status").stdout == "New\n"
    assert second.call("kill").stdout == "twin_daily_1 is not running\n"
    assert "YARN knows no application" in second.call("wait").stderr
    assert first.application().is_active
    second.run()
    assert second.application_id != first.application_id
    assert second.kill() == f"stopped {second.application_id} in order"
    assert first.application().is_active
    assert first.kill() == f"stopped {first.application_id} in order"
    assert first.call("wait").returncode == 1
    assert second.call("status").stdout == "UnsuccessfulFinish\n"
