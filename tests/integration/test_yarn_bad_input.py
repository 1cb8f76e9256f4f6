"""What ``run-job`` refuses: one line each, and nothing is written anywhere."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from forked_tool import RUN_JOB, run_about
from suites import long

from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.local_cluster.cluster import LocalCluster

NAME = "refused"
INPUT = "refused-in"


@pytest.fixture
def good(cluster: LocalCluster, tmp_path: Path) -> dict[str, str]:
    """The properties of a job that would run."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    if INPUT not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(INPUT, 2, 1)])[INPUT].result(30)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "good_task.py").write_text(
        "from homeport.container.api import BatchTask\n"
        "class Task(BatchTask):\n"
        "    def process_batch(self, table, collector): pass\n"
        "class Other: pass\n"
    )
    (tmp_path / "package" / "grouping.py").write_text(
        "from homeport.job_coordinator.grouper.task_name_grouper import TaskNameGrouper\n"
        "class Forgetful(TaskNameGrouper):\n"
        "    def group(self, tasks, task_locality, processor_locality):\n"
        "        return {'0': [task.task_name for task in tasks[1:]]}\n"
    )
    return {
        "job.name": NAME,
        "job.default.system": "kafka",
        "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
        "systems.kafka.consumer.bootstrap.servers": cluster.bootstrap_servers,
        "systems.kafka.default.stream.replication.factor": "1",
        "task.class": "good_task:Task",
        "task.inputs": f"kafka.{INPUT}",
        "yarn.package.path": str(tmp_path / "package"),
    }


def run_job(
    values: dict[str, str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """``run-job`` with these properties."""
    variables = {**os.environ, **environment}
    return run_about(values, folder / "job.properties", (), variables, module=RUN_JOB, limit_s=120)


def assert_refused(
    done: subprocess.CompletedProcess[str], cluster: LocalCluster, pattern: str
) -> None:
    """Exit code 1, one error on stderr that matches, no topic and no application of the job."""
    assert done.returncode == 1, done.stdout
    assert done.stdout == ""
    waits = r"(no answer from Kafka at .* yet: .*\n)?"
    assert re.fullmatch(f"{waits}error: .*{pattern}.*\n", done.stderr), done.stderr
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    assert not [t for t in admin.list_topics(timeout=10).topics if NAME in t and t != INPUT]
    rest = ResourceManagerRest.from_environment(cluster.env())
    assert rest.applications(f"{NAME}_1") == ()


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        long({"job.name": None}, r"job\.name is missing: .*; "),
        long({"task.class": None}, r"task\.class is missing: .*; "),
        long({"task.inputs": "refused-in"}, r"task\.inputs = 'refused-in': .*; "),
        ({"task.inputs": "web.clicks"}, r"no system 'web' is configured: .*; write kafka\.web\.cl"),
        ({"job.hotstandby.enable": "true"}, r"no program reads .*; write job\.hotstandby\.enabled"),
        ({"task.outputs": "kafka.absent"}, r"task\.outputs = .*; .* task\.outputs\.create\.partit"),
        ({"task.inputs": "kafka.absent"}, r"task\.inputs = 'kafka\.absent': .*does not exist.*; "),
        ({"task.class": "absent_module:Task"}, r"task\.class = 'absent_module:Task': .*; "),
        long({"task.class": "good_task:Absent"}, r"task\.class = 'good_task:Absent': .*; "),
        ({"task.class": "good_task:Other"}, r"task\.class = 'good_task:Other': .*; "),
        long({"yarn.package.path": None}, r"yarn\.package\.path is missing: .*; "),
        ({"yarn.package.path": "/absent"}, r"yarn\.package\.path = '/absent': .*; "),
        ({"yarn.python.executable": "/absent/python"}, r"'/absent/python': there is no .*; "),
        long({"yarn.python.executable": "/etc/passwd"}, r"'/etc/passwd': it is no program.*; "),
        ({"yarn.python.executable": "/bin/false"}, r"'/bin/false': .*; name an interpreter"),
        ({"cluster-manager.container.memory.mb": "9999999"}, r"memory\.mb = '9999999': .*; write"),
        ({"yarn.container.label": "state"}, r"= 'state': .* fairScheduler has no node labels.*; "),
        long({"job.container.count": "many"}, r"job\.container\.count = 'many': .*; "),
        long(
            {"job.systemstreampartition.grouper.factory": "mine"}, r"= 'mine': no such grouper.*; "
        ),
        long(
            {"task.name.grouper.factory": "grouping:Absent"},
            r"task\.name\.grouper\.factory = 'grouping:Absent': .* has no 'Absent'; correct",
        ),
        (
            {"task.name.grouper.factory": "grouping.Forgetful"},
            r"= 'grouping:Forgetful': its answer .*'Partition 0' is in no container; correct",
        ),
        long({"job.hotstandby.enabled": "true"}, r"= 'true': hot standby needs host affinity; "),
        long(
            {"cluster-manager.container.check-in.interval.ms": "20000"}, r"= '20000': .*below.*; "
        ),
        ({"job.container.count": "3"}, r"job\.container\.count = '3': .*only 2 tasks.*; "),
        (
            {"my.table": "x" * 1_100_000},
            r"my\.table = 'x{40}\.\.\.': .* of 11\d{5} bytes; .* takes 1000000 at most; ",
        ),
        (
            {"systems.kafka.consumer.bootstrap.servers": "127.0.0.1:1"},
            r"Kafka at 127\.0\.0\.1:1 .*; ",
        ),
    ],
)
def test_each_fault_is_one_line_and_writes_nothing(
    cluster: LocalCluster,
    good: dict[str, str],
    tmp_path: Path,
    change: dict[str, str | None],
    pattern: str,
) -> None:
    """Key, value, rule and remedy; before the coordinator stream exists."""
    values = {k: v for k, v in (good | change).items() if v is not None}
    done = run_job(values, tmp_path, cluster.env())
    assert_refused(done, cluster, pattern)


@pytest.mark.parametrize(
    ("partitions", "cleanup", "rule"),
    [
        (2, "compact", "it has 2 partitions and must have 1"),
        (1, "delete", "its cleanup.policy is 'delete' and must be 'compact'"),
    ],
)
def test_a_coordinator_stream_of_the_wrong_shape_is_left_alone(
    cluster: LocalCluster,
    good: dict[str, str],
    tmp_path: Path,
    partitions: int,
    cleanup: str,
    rule: str,
) -> None:
    """One line names the topic, what it is and what it must be; nothing is written to it."""
    job = f"misshapen-{cleanup}"
    topic = f"__samza_coordinator_{job}_1"
    servers: dict[str, str | int | float | bool]
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    made = NewTopic(topic, partitions, 1, config={"cleanup.policy": cleanup})
    admin = AdminClient(servers)
    admin.create_topics([made])[topic].result(30)
    done = run_job({**good, "job.name": job}, tmp_path, cluster.env())
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(f"error: topic = '{topic}': {rule}; .*\n", done.stderr), done.stderr
    reader = Consumer({**servers, "group.id": "nobody"})
    try:
        ends = [reader.get_watermark_offsets(TopicPartition(topic, p)) for p in range(partitions)]
    finally:
        reader.close()
    assert ends == [(0, 0)] * partitions
    assert ResourceManagerRest.from_environment(cluster.env()).applications(f"{job}_1") == ()


def test_a_resource_manager_that_does_not_answer_is_named(
    cluster: LocalCluster, good: dict[str, str], tmp_path: Path
) -> None:
    """Its address and the variable that led there."""
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.webapp.address</name>"
        "<value>127.0.0.1:1</value></property></configuration>"
    )
    done = run_job(good, tmp_path, {**cluster.env(), "HADOOP_CONF_DIR": str(tmp_path)})
    assert_refused(done, cluster, r"http://127\.0\.0\.1:1 .*does not answer.*HADOOP_CONF_DIR")


def test_without_hadoop_configuration_the_variable_is_named(
    cluster: LocalCluster, good: dict[str, str], tmp_path: Path
) -> None:
    """No cluster can be found without HADOOP_CONF_DIR."""
    done = run_job(good, tmp_path, {**cluster.env(), "HADOOP_CONF_DIR": ""})
    assert_refused(done, cluster, "HADOOP_CONF_DIR is not set")
