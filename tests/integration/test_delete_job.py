"""A job on YARN is ended by ``homeport delete-job``; jobs of other names have all that they had."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from adjunct_planes import logs_of
from clusters_under_test import LocalUnderTest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from forked_tool import run_about
from job_configs import job_config
from json_answers import require_promised
from left_stores import store_in
from recorded_jobs import record_job
from secured_broker import RIGHTS, client_of, keys_of, secured_broker
from waiting import until
from yarn_jobs import PARTITIONS, Job, wait_for

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.container.progress.store_meta import META_FILE
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.output_topics import create_outputs
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.topics import ChangelogTopicManager, ChangelogTopicRecord
from homeport.job_coordinator.model.job_model import SystemStream


def topics(servers: str, name: str) -> set[str]:
    """The topics with that name in theirs."""
    found = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30).topics
    return {topic.replace(name, "*") for topic in found if name in topic}


def folders(job: Job) -> list[str]:
    """The nodes that have a folder of the job."""
    return [n for n in job.cluster.nodes if (job.cluster.state_dir(n) / f"{job.name}-1").exists()]


def stores(job: Job) -> set[str]:
    """Those that have its store: the AM's node has a folder too, for its history."""
    state_dir = job.cluster.state_dir
    return {n for n in job.cluster.nodes if (state_dir(n) / f"{job.name}-1" / "counts").exists()}


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What the command printed with --json."""
    require_promised(("delete-job",), done.stdout)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_a_job_on_yarn_is_deleted_with_all_that_it_left(make_job: Callable[[str], Job]) -> None:
    """Refused while it runs; killed in its middle, run-job is refused until it is finished."""
    job, other = make_job("deleted"), make_job("staying")
    for each in (job, other):
        each.values["job.container.count"] = "2"
        each.produce(300)
        each.run()
        each.wait_until_running()
        each.expects(300)
    refused = job.operator("delete-job", "--apply", limit_s=120)
    assert refused.returncode == 1
    assert f"runs already as {job.application_id}" in refused.stderr
    before = topics(job.servers, "staying"), folders(other)
    # As an AM that does not answer: its files stay in the cluster's file system.
    job.rest.kill(job.application_id)
    wait_for(lambda: not job.application().is_active, job)

    with job.operating("delete-job", "--apply") as cut:
        assert cut.stdout is not None
        assert cut.stdout.readline().startswith("topic kafka.__samza_checkpoint_ver_1_for_deleted")
        cut.kill()
        cut.communicate()
    halved = job.call("run")
    assert halved.returncode == 1
    assert "the deletion of the job began with submission" in halved.stderr

    done = job.operator("delete-job", "--apply", "--json", limit_s=240)
    assert done.returncode == 3, done.stdout + done.stderr
    outcomes = {(line["kind"], line["outcome"]) for line in lines(done)}
    assert {("topic", "deleted"), ("files", "deleted"), ("host", "left")} <= outcomes
    assert topics(job.servers, "deleted") == {"*-in", "__homeport_*_jobs"}
    left = [line["name"] for line in lines(done) if line["kind"] == "host"]
    assert left
    for node in folders(job):
        base = job.cluster.state_dir(node)
        cleaned = job.operator("clean", "--apply", f"--host={node}", f"--base={base}")
        assert cleaned.returncode == 0, cleaned.stderr
    assert folders(job) == []

    assert (topics(job.servers, "staying"), folders(other)) == before
    other.produce(300, first=300)
    other.expects(600)
    other.end()


@pytest.mark.long
def test_launchers_remove_what_a_deleted_job_has_left(make_job: Callable[[str], Job]) -> None:
    """With the key, wherever they run; what a job has that lives or is stopped stays."""
    gone, stopped, living = (make_job(name) for name in ("gone", "stopped", "living"))
    for each in (gone, stopped, living):
        each.values["job.container.count"] = "1"
        each.begin(100)
        each.expects(100)
    (first,) = stores(gone)
    assert gone.operator("move", "0", "any").returncode == 0
    gone.end()
    stopped.end()
    left = stores(gone)
    assert len(left) == 2
    deleted = gone.operator("delete-job", "--apply", "--json", limit_s=240)
    assert deleted.returncode == 3
    assert {line["name"] for line in lines(deleted) if line["kind"] == "host"} == left
    nodes, state_dir = {*gone.cluster.nodes}, gone.cluster.state_dir
    for node in nodes - left:
        shutil.copytree(state_dir(first) / "gone-1", state_dir(node) / "gone-1", dirs_exist_ok=True)
    foreign = [state_dir(node) / "gone-1-copy" for node in nodes]
    for folder in foreign:
        folder.mkdir()
    before = stores(stopped), stores(living)

    cleaning = make_job("cleaning")
    cleaning.values |= {"job.hosts.clean.after.ms": "3600000"}
    cleaning.begin(100)
    there = stores(cleaning)
    assert there
    wait_for(lambda: there.isdisjoint(folders(gone)), cleaning)
    cleaning.expects(100)
    assert {*folders(gone)} == nodes - there
    log = "".join(logs_of(cleaning, ["*.log"]))
    removed = [line for line in log.splitlines() if " clean: gone-1/counts/" in line]
    assert len(removed) == PARTITIONS * len(there), log
    assert all(": removed: the job was deleted; " in line for line in removed)
    assert (stores(stopped), stores(living)) == before
    assert all(folder.exists() for folder in foreign)
    for folder in foreign:
        folder.rmdir()
    stopped.begin(100)
    (container,) = stopped.containers().values()
    assert {r["kind"] for r in container["restored"]["counts"].values()} == {"none"}, container
    for each in (living, cleaning):
        each.produce(100, first=100)
        each.expects(200)
        each.end()


def _recorded(kafka: str, keys: dict[str, str]) -> Config:
    """A job that has run on YARN, as its coordinator stream has it; its topics are there."""
    name = keys["job.name"]
    config = job_config(
        kafka,
        {
            "task.inputs": f"kafka.in-{name}",
            "stores.s.factory": "rocksdb",
            "stores.s.key.serde": "string",
            "stores.s.msg.serde": "string",
            "stores.s.changelog": f"kafka.log-{name}",
            **keys,
        },
    )
    system = SystemConfig.of(config, "kafka")
    admin = TopicAdmin(system)
    log, source = f"log-{name}", config["task.inputs"].removeprefix("kafka.")
    if not admin.partition_counts([source]):
        admin.create(source, 2, 1, {})
    admin.create(log, 2, 1, {"cleanup.policy": "compact"})
    admin.ensure(coordinator_topic_spec(JobConfig.of(config)))
    model = calculate_job_model(config, {SystemStream("kafka", source): 2}, NOTHING)
    with CoordinatorStreamStore(
        system, JobConfig.of(config).coordinator_topic, source="test"
    ) as store:
        store.bootstrap()
        record_job(store, model)
        ConfigManager(store).replace(config, "job-runner")
        record = ChangelogTopicRecord(admin.topic_ids([log])[log], "s")
        ChangelogTopicManager(store).write({SystemStream("kafka", log): record})
        create_outputs(config, store)
    return config


@pytest.fixture
def tool(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``homeport delete-job`` about a job that ran by itself, without YARN."""

    def call(config: Config, *words: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "job.properties"
        place = f"--base={tmp_path}"
        return run_about(config, path, ["delete-job", place, *words], {"HOME": str(tmp_path)})

    return call


LOCAL = {"job.coordinator.factory": "local"}
MAKES = {"task.outputs.create.partitions": "1"}


def test_what_another_job_uses_is_kept(
    broker: LocalUnderTest, tool: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Its input and its output, each by name and with that job's; --keep-outputs keeps all.

    The broker has no other stream: one that cannot be read, as of another test, keeps all outputs.
    """
    kafka = broker.bootstrap_servers
    mark = uuid.uuid4().hex[:8]
    outputs = f"kafka.mine-{mark},kafka.read-{mark},kafka.shared-{mark}"
    mine = _recorded(kafka, {"job.name": f"mine-{mark}", "task.outputs": outputs, **MAKES, **LOCAL})
    reader = f"reader-{mark}"
    _recorded(
        kafka,
        {
            "job.name": reader,
            "task.inputs": f"kafka.read-{mark}",
            "task.outputs": f"kafka.shared-{mark}",
            **LOCAL,
        },
    )
    kept = tool(mine, "--keep-outputs")
    assert kept.returncode == 0, kept.stderr
    assert f"topic kafka.mine-{mark}: kept: an output; --keep-outputs" in kept.stdout
    done = tool(mine, "--apply")
    assert done.returncode == 0, done.stderr
    stated = {line.split()[1].rstrip(":"): line for line in done.stdout.splitlines()}
    assert "deleted: an output" in stated[f"kafka.mine-{mark}"]
    used = f"the job '{reader}' with id '1' has it as an"
    assert f"kept: an output; {used} input of the job" in stated[f"kafka.read-{mark}"]
    assert f"kept: an output; {used} output of the job" in stated[f"kafka.shared-{mark}"]
    assert "deleted: the changelog of store s" in stated[f"kafka.log-mine-{mark}"]
    stay = {"in-mine-*", "read-*", "shared-*", "log-reader-*", "__samza_coordinator_reader-*_1"}
    assert topics(kafka, mark) == stay


@pytest.mark.long
def test_a_topic_that_the_user_may_not_delete_is_left_to_the_next_run(
    tmp_path: Path, tool: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The others go, the stream stays; nothing starts meanwhile, and with the right all goes."""
    users = {"admin": "secret", "flights": "hidden"}
    with secured_broker(tmp_path, users, RIGHTS) as servers:
        admin = AdminClient({**client_of(servers, "admin", "secret"), "log_level": 0})

        def names() -> set[str]:
            found = admin.list_topics(timeout=30).topics
            return {name for name in found if "mine" in name}

        until(lambda: _is_granted(admin, [_right(kind) for kind in _KINDS]))
        forbidden = _right(ResourceType.TOPIC, "log-mine", AclOperation.DELETE, is_granted=False)
        until(lambda: _is_granted(admin, [forbidden]))
        login = keys_of("flights", "hidden")
        own = {"job.name": "mine", "task.outputs": "kafka.out-mine", **MAKES, **LOCAL, **login}
        mine = _recorded(servers, own)
        stream = "__samza_coordinator_mine_1"
        assert names() == {"in-mine", "log-mine", "out-mine", stream}

        first = tool(mine, "--apply")
        assert first.returncode == 3, first.stdout + first.stderr
        stated = {line.split()[1].rstrip(":"): line for line in first.stdout.splitlines()}
        refused = stated["kafka.log-mine"]
        assert "left: the changelog of store s; Kafka refuses to delete it (" in refused
        assert "let topics be deleted (delete.topic.enable, or the right to do so)" in refused
        assert "deleted: an output" in stated["kafka.out-mine"]
        assert "left: the coordinator stream, which goes last" in stated[f"kafka.{stream}"]
        assert first.stderr.splitlines()[-1].endswith(": see the lines with left")
        assert names() == {"in-mine", "log-mine", stream}
        halved = run_about(
            mine, tmp_path / "job.properties", ["run-local", f"--work-dir={tmp_path}"]
        )
        assert halved.returncode == 1
        assert "the deletion of the job began with submission" in halved.stderr

        for gone in admin.delete_acls([_filter(forbidden)]).values():
            assert gone.result(30)
        last = tool(mine, "--apply")
        assert last.returncode == 0, last.stdout + last.stderr
        assert names() == {"in-mine"}


_KINDS = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)


def _right(
    kind: ResourceType,
    name: str = "*",
    operation: AclOperation = AclOperation.ALL,
    *,
    is_granted: bool = True,
) -> AclBinding:
    """What the user ``flights`` may do, or may not."""
    permission = AclPermissionType.ALLOW if is_granted else AclPermissionType.DENY
    literal = ResourcePatternType.LITERAL
    return AclBinding(kind, name, literal, "User:flights", "*", operation, permission)


def _filter(right: AclBinding) -> AclBindingFilter:
    parts = (right.restype, right.name, right.resource_pattern_type, right.principal, right.host)
    return AclBindingFilter(*parts, right.operation, right.permission_type)


def _is_granted(admin: AdminClient, rights: Sequence[AclBinding]) -> bool:
    """Whether the broker, which may still start, has taken them."""
    try:
        for future in admin.create_acls(list(rights), request_timeout=5).values():
            future.result(10)
    except KafkaException:
        return False
    return True


def test_jobs_whose_names_are_one_in_topics_are_told_apart(
    kafka: str, tool: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Of ``a_b`` and ``a-b`` the one without a stream of its own is refused; nothing is deleted."""
    mark = uuid.uuid4().hex[:8]
    mine = _recorded(kafka, {"job.name": f"one_{mark}", **LOCAL})
    before = topics(kafka, mark)
    refused = tool(mine.merged({"job.name": f"one-{mark}"}), "--apply")
    assert (refused.returncode, refused.stdout) == (1, "")
    (line,) = refused.stderr.splitlines()
    assert f"job.name = 'one-{mark}'" in line
    assert f"belongs to the job with job.name = 'one_{mark}' and job.id = '1'" in line
    assert topics(kafka, mark) == before


def test_a_job_that_is_not_there_is_one_line(
    kafka: str, tool: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Neither now nor ever."""
    name = f"never-{uuid.uuid4().hex[:8]}"
    done = tool(job_config(kafka, {"job.name": name}), "--apply")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: job.name = '{name}': the job has no coordinator stream")


def test_a_host_is_cleaned_of_deleted_jobs_alone(
    kafka: str, tmp_path: Path, tool: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Of a job that lives, of a deleted one, and of one whose own file cannot be read."""
    mark = uuid.uuid4().hex[:8]
    lives, gone = (
        _recorded(kafka, {"job.name": f"{n}-{mark}", **LOCAL}) for n in ("lives", "gone")
    )
    admin, base = TopicAdmin(SystemConfig.of(lives, "kafka")), tmp_path / "stores"
    logs = [f"log-lives-{mark}", f"log-gone-{mark}"]
    ids = admin.topic_ids(logs)
    alive, left = (
        store_in(base, f"{log.removeprefix('log-')}-1", ids[log], log=f"kafka.{log}", store="s")
        for log in logs
    )
    unreadable = left.with_name("Partition_1")
    shutil.copytree(left, unreadable)
    (unreadable / META_FILE).write_bytes(b"half")
    strange = store_in(base, f"strange-{mark}-1", "x")
    assert tool(gone, "--apply").returncode == 0
    assert left.exists()

    host = Config({k: v for k, v in lives.items() if k.startswith(("systems.", "job.default"))})

    def cleaned(*words: str) -> dict[str, str]:
        file = tmp_path / "host.properties"
        arguments = ["clean", "--all-jobs", f"--base={base}", "--json", *words]
        done = run_about(host, file, arguments, {"HOME": str(tmp_path), "NM_HOST": "nm1"})
        assert done.returncode == 0, done.stderr
        require_promised(("clean",), done.stdout)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return {str(Path(row["path"]).relative_to(base)): row["outcome"] for row in rows}

    planned = cleaned()
    assert set(planned.values()) == {"kept", "would be removed"}
    done = cleaned("--apply")
    assert [path for path, outcome in done.items() if outcome == "removed"] == [
        str(left.relative_to(base))
    ]
    assert not left.exists()
    assert all(path.exists() for path in (alive, unreadable, strange))
    (unreadable / META_FILE).unlink()
    shutil.rmtree(unreadable)
    assert cleaned("--apply").keys() == {str(alive.relative_to(base)), f"strange-{mark}-1"}
    assert not (base / f"gone-{mark}-1").exists()
