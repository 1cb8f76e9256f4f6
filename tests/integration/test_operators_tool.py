"""The program ``homeport`` before a real Kafka: a job that does not run, and one that does."""

from __future__ import annotations

import json
import re
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from coordinator_server import TOKEN, Backend, Loop, serving
from forked_tool import MODULE, run_about
from job_configs import job_config
from json_answers import require_promised
from recorded_jobs import record_job

from homeport.config.access_tokens import digest_of
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.audit import AuditTrail, Change
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.codec import decode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.job_model import JobModel, SystemStream
from homeport.job_coordinator.status.shape import ShownJob, ShownStatus

SECRET = "hunter2"  # noqa: S105 - of these tests only


@dataclass
class Operator:
    """A job that has run with state in two containers, and the tool called about it."""

    config: Config
    file: Path
    store: CoordinatorStreamStore
    model: JobModel
    token: str = ""

    def call(
        self, *words: str, typed: str = "", **overrides: str
    ) -> subprocess.CompletedProcess[str]:
        """The tool's exit code and words; ``overrides`` stand above the properties file."""
        values = self.config.merged({k.replace("__", "."): v for k, v in overrides.items()})
        return run_about(values, self.file, words, self._token_file(), typed=typed)

    def _token_file(self) -> dict[str, str]:
        if not self.token:
            return {}
        path = self.file.with_name("token")
        path.write_text(self.token, encoding="utf-8")
        return {"HOMEPORT_TOKEN_FILE": str(path)}

    def answer(self, *words: str, **overrides: str) -> str:
        """What it prints; it succeeds, and shows no secret."""
        done = self.call(*words, **overrides)
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout + done.stderr
        if "--json" in words:
            require_promised(words, done.stdout)
        return done.stdout

    def refusal(self, *words: str, **overrides: str) -> str:
        """Its one line; nothing is printed, and nothing written."""
        before = self.recorded()
        done = self.call(*words, **overrides)
        assert (done.returncode, done.stdout) == (1, "")
        *notes, error = done.stderr.splitlines()
        assert error.startswith("error: ")
        assert all(note.startswith("from ") for note in notes)
        assert self.recorded() == before
        return error

    def recorded(self) -> Config:
        """What the coordinator stream says now."""
        self.store.catch_up()
        return ConfigManager(self.store).read()


@pytest.fixture
def operator(kafka: str, tmp_path: Path) -> Iterator[Operator]:
    """A job of its own that does not run now."""
    unique = uuid.uuid4().hex[:12]
    config = job_config(
        kafka,
        {
            "job.name": f"tool_{unique}",
            "job.container.count": "2",
            "task.inputs": f"kafka.in-{unique}",
            "stores.s.factory": "rocksdb",
            "stores.s.key.serde": "string",
            "stores.s.msg.serde": "string",
            "stores.s.changelog": f"kafka.log-{unique}",
            "my.own.password": SECRET,
        },
    )
    system = SystemConfig.of(config, "kafka")
    admin = TopicAdmin(system)
    admin.create(f"in-{unique}", 4, 1, {})
    admin.ensure(coordinator_topic_spec(JobConfig.of(config)))
    model = calculate_job_model(config, {SystemStream("kafka", f"in-{unique}"): 4}, NOTHING)
    topic = JobConfig.of(config).coordinator_topic
    with CoordinatorStreamStore(system, topic, source="test", timeout_s=20) as store:
        store.bootstrap()
        _publish(store, model)
        yield Operator(config, tmp_path / "job.properties", store, model)


def _publish(store: CoordinatorStreamStore, model: JobModel) -> None:
    record_job(store, model, version=3)
    names = list(model.containers[ProcessorId("1")].tasks)
    LocalityManager(store).write(ProcessorId("1"), names, Host("nm2"), 1)
    store.catch_up()


class RunningBackend(Backend):
    """The AM of that job: it runs version 4, with a commit interval of its own."""

    def __init__(self, model: JobModel) -> None:
        """Version 4 alone is served."""
        super().__init__()
        config = model.config.merged({"task.commit.ms": "77"})
        self.models = {4: replace(model, config=config), None: replace(model, config=config)}
        self.name = model.config["job.name"]
        self.url = ""

    def becomes(self, name: str) -> None:
        """The job at the URL is another one, also for those that share the last status."""
        self.name, ends = name, time.monotonic() + 20
        client = CoordinatorClient(self.url, None)  # as the tool has none
        while client.status().job.name != name:
            assert time.monotonic() < ends

    def status(self) -> ShownStatus:
        """As far as the tool reads it."""
        job = ShownJob(name=self.name, id="1", application="application_1_2", model_version=4)
        return ShownStatus(job=job)


@pytest.fixture
def running(operator: Operator) -> Iterator[RunningBackend]:
    """The job runs: its AM answers at the URL that the stream says."""
    backend = RunningBackend(operator.model)
    with closing(Loop()) as loop, serving(loop, backend) as served:
        backend.url = served.url
        operator.store.write([wire.set_config("yarn.am.tracking.url", backend.url)])
        yield backend


def test_a_job_that_does_not_run_is_read_from_its_stream(operator: Operator) -> None:
    """JobModel, configuration and localities are as recorded, and the tool says so."""
    done = operator.call("job-model", "--json")
    assert done.stderr.endswith("the job does not run\n")
    shown = decode_job_model(done.stdout.encode())
    assert shown.containers == operator.model.containers
    assert dict(shown.config) == {**operator.config, "my.own.password": "********"}
    text = operator.answer("job-model", "--processor=1", "--version=3")
    assert text.startswith(
        "version 3: 1 containers, 2 tasks\nprocessor 1\n  Partition 1: changelog 1"
    )
    assert operator.answer("config", "get", "job.container.count") == "2\n"
    assert operator.answer("config", "get", "task.commit.ms") == "10000\n"
    assert "my.own.password=********\n" in operator.answer("config", "get")
    assert "did you mean job.name?" in operator.refusal("config", "get", "job.nam")
    assert operator.answer("locality") == "processor  host\n1          nm2\n"
    hosts = json.loads(operator.answer("locality", "--tasks", "--json"))
    assert hosts == {"Partition 1": "nm2", "Partition 3": "nm2"}
    assert "version 3 alone" in operator.refusal("job-model", "--version=2")
    assert "the job has 0, 1" in operator.refusal("job-model", "--processor=7")
    for command in (("explain", "0"), ("status",), ("what-if", "--host=nm1")):
        assert "does not run: only what runs has an allocator" in operator.refusal(*command)


@pytest.mark.usefixtures("running")
def test_the_tool_queries_a_running_job(operator: Operator) -> None:
    """Its AM's answers are shown, the version in force and its own configuration among them."""
    done = operator.call("config", "get", "task.commit.ms")
    assert done.stdout == "77\n"
    assert "from the running job, application_1_2 at http://127.0.0.1:" in done.stderr
    assert operator.answer("job-model").startswith("version 4: 2 containers, 4 tasks\n")
    assert operator.answer("locality") == "processor  host\n0          h1\n"
    assert "no JobModel of version 2" in operator.refusal("job-model", "--version=2")
    with_secrets = operator.call("config", "get", "my.own.password", "--show-secrets")
    assert with_secrets.stdout == f"{SECRET}\n"


def test_another_program_at_the_port_is_not_the_job(
    operator: Operator, running: RunningBackend
) -> None:
    """The port of an AM that is gone may be another job's."""
    running.becomes("another")
    assert operator.answer("config", "get", "task.commit.ms") == "10000\n"


def test_a_change_is_written_and_its_meaning_said(
    operator: Operator, running: RunningBackend
) -> None:
    """By the key's liveness; a deletion brings back what was deployed."""
    printed = operator.answer("config", "set", "job.container.count", "4")
    assert printed.startswith("the running job takes it within 2000 ms\n")
    assert printed.endswith("set-config job.container.count = 4\n")
    assert operator.recorded()["job.container.count"] == "4"
    assert "nothing restarts" in operator.answer("config", "set", "task.commit.ms", "5")
    assert "its containers restart" in operator.answer("config", "set", "my.other.key", "5")
    assert "from the next deployment" in operator.answer("config", "set", "yarn.queue", "fast")
    assert "nothing changes" in operator.answer("config", "set", "yarn.queue", " fast ")
    assert "= ********" in operator.answer("config", "set", "my.other.password", SECRET)
    assert "value, if any, stands" in operator.answer("config", "set", "yarn.queue", "--delete")
    assert "nothing changes" in operator.answer("config", "set", "yarn.queue", "--delete")
    running.becomes("another")
    assert "next start" in operator.answer("config", "set", "job.container.count", "3")


def test_tokens_are_made_listed_and_revoked(operator: Operator) -> None:
    """A token is printed once; the stream has its digest. Two of a name are valid at once."""
    key = keys.JOB_COORDINATOR_OPERATE_TOKENS.name
    made = [operator.call("token", "new", "ada", "--role=operate") for _ in range(2)]
    tokens = [done.stdout.strip() for done in made]
    digests = [digest_of(token.encode()) for token in tokens]
    assert operator.recorded()[key] == ",".join(f"ada:{digest}" for digest in digests)
    assert not [d for done in made for d in digests if d in done.stdout + done.stderr]
    assert "at most 2 are valid at once" in operator.refusal(
        "token", "new", "ada", "--role=operate"
    )
    assert "NAME:DIGEST" in operator.refusal("token", "new", "a b")
    operator.answer("token", "new", "eve")
    listed = [line.split() for line in operator.answer("token", "list").splitlines()]
    assert [words[:2] for words in listed] == [["read", "eve"], *[["operate", "ada"]] * 2]
    assert listed[2][2] == digests[1][:12]
    operator.answer("token", "revoke", "ada", "--old")
    assert operator.recorded()[key] == f"ada:{digests[1]}"
    assert "has no older token" in operator.refusal("token", "revoke", "ada", "--old")
    operator.answer("token", "revoke", "ada")
    assert operator.recorded()[key] == ""
    assert "has no token" in operator.refusal("token", "revoke", "ada")
    # What the file says would come back by a deletion.
    own = {key.replace(".", "__"): f"ada:{digests[0]}"}
    operator.answer("config", "set", key, f"ada:{digests[0]}")
    operator.answer("token", "revoke", "ada", **own)
    assert operator.recorded()[key] == ""
    assert operator.answer("token", "list", **own).split()[:2] == ["read", "eve"]


def test_tokens_that_are_changed_at_once_are_all_there(operator: Operator) -> None:
    """Each command writes the whole list; a revoked token does not come back."""
    operator.answer("token", "new", "mallory")
    names = ["ada", "bob", "eve"]
    commands = [("token", "revoke", "mallory"), *(("token", "new", name) for name in names)]
    with ThreadPoolExecutor(len(commands)) as pool:
        done = list(pool.map(lambda command: operator.call(*command), commands))
    assert [(d.returncode, d.stderr) for d in done if d.returncode] == []
    listed = [line.split()[1] for line in operator.answer("token", "list").splitlines()]
    assert sorted(listed) == names


def test_what_the_stream_alone_names_is_not_used_here(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka is where the operator's file says; a class that only the stream names stays out."""
    name = next(n for n in operator.config if n.endswith("consumer.bootstrap.servers"))
    operator.store.write([wire.set_config(name, "nowhere.invalid:1")])
    printed = operator.answer("config", "set", "job.container.count", "3")
    assert printed.endswith("set-config job.container.count = 3\n")
    grouper = "task.name.grouper.factory"
    text = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\n"
    (tmp_path / "foreign.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    operator.store.write([wire.set_config(grouper, "foreign:Grouper")])
    operator.answer("config", "set", "job.container.count", "4")
    assert not (tmp_path / "foreign.ran").exists()
    operator.call("config", "set", grouper, "foreign:Grouper")
    operator.call("config", "set", "job.container.count", "3", **{grouper: "foreign:Grouper"})
    assert (tmp_path / "foreign.ran").exists()  # what the operator names too is imported


def test_changes_are_shown(operator: Operator, running: RunningBackend, tmp_path: Path) -> None:
    """Of the running job; of an earlier one by its history, whole lines alone."""
    url = operator.recorded()["yarn.am.tracking.url"]
    CoordinatorClient(url, TOKEN).shutdown()
    assert running.said == ["shutdown"]
    named = "let HOMEPORT_TOKEN_FILE name a file with the token of an operator"
    needed = f"401 a bearer token is needed; {named}"
    assert needed in operator.refusal("audit")
    operator.token = TOKEN
    line = operator.answer("audit")
    assert line.endswith("UTC  job from 127.0.0.1 by http: the job: 'runs' -> 'is to end'\n")
    assert json.loads(operator.answer("audit", "--json"))[0]["author"] == "job"
    folder = tmp_path / "history"
    writer = HistoryWriter(folder, "driver", "nm1", 64)
    AuditTrail(lambda change: writer.event("audit", **change)).add(
        Change("ada", "10.0.0.7", "http", "config a", None, "1")
    )
    writer.event("decision", cause="audit")
    writer.close()
    (file,) = folder.glob("*.jsonl")
    file.write_text(file.read_text() + '{"event":"audit","ts_')
    printed = operator.answer("audit", f"--history={folder}")
    assert printed.endswith("UTC  ada from 10.0.0.7 by http: config a: nothing -> '1'\n")
    assert len(printed.splitlines()) == 1
    assert "it is no folder" in operator.refusal("audit", f"--history={tmp_path / 'none'}")


def test_a_job_that_shows_nothing_without_a_token_is_read_with_one(
    operator: Operator, running: RunningBackend
) -> None:
    """Without it each tool says in one line what it needs; a job that runs is not said to rest."""
    token = operator.call("token", "new", "eve", "--role=read").stdout.strip()
    closed = {
        "cluster-manager.jobcoordinator.read.open": "false",
        **{k: v for k, v in operator.recorded().items() if ".tokens." in k},
    }
    model = running.models[None]
    running.models[None] = replace(model, config=model.config.merged(closed))
    needed = "let HOMEPORT_TOKEN_FILE name a file with the token of an operator"
    for command in (
        ("status",),
        ("job-model",),
        ("config", "get", "task.commit.ms"),
        ("locality",),
    ):
        assert needed in operator.refusal(*command)
    operator.token = token[::-1]
    assert "401 the bearer token is not this job's; let" in operator.refusal("locality")
    operator.token = f"{token}\n"
    assert operator.answer("locality") == "processor  host\n0          h1\n"
    assert operator.answer("config", "get", "task.commit.ms") == "77\n"


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("job.container.count", "many", "job.container.count = 'many': it must be a whole number"),
        ("job.container.count", "5", "there are only 4 tasks"),
        ("job.name", "other", "it says which job this is"),
        ("yarn.am.tracking.url", "http://h/", "the AM writes it"),
        ("task.spark.driver.memory.mb", "4096", "it must be below cluster-manager"),
        ("stores.s.key.serde", "json", "stores.s.key.serde = 'json': it is 'string', and settled"),
        ("task.inputs", "kafka.other", "the input stream must exist, and system 'kafka' has no"),
        ("job.elasticity.factor", "2", "a task reads whole partitions"),
    ],
)
def test_a_change_that_would_break_the_job_is_not_written(
    operator: Operator, key: str, value: str, rule: str
) -> None:
    """Types, rules across keys, the inputs as they are, and what is settled with state."""
    assert rule in operator.refusal("config", "set", key, value)


def test_a_secret_can_be_given_without_showing_it(operator: Operator) -> None:
    """Standard input instead of the command line, whose secrets are warned of."""
    done = operator.call("config", "set", "a.password", "-", typed=f"{SECRET}\n")
    assert (done.returncode, "warning" in done.stderr) == (0, False)
    assert operator.recorded()["a.password"] == SECRET
    typed = operator.call("config", "set", "a.password", "other")
    assert "homeport config set a.password - reads it from standard input" in typed.stderr


def test_a_key_that_is_nearly_one_of_ours_needs_confirmation(operator: Operator) -> None:
    """No program would read it: --force writes it all the same."""
    words = ("config", "set", "systems.kafka.samza.ofset.default", "oldest")
    assert "write systems.kafka.samza.offset.default, if that" in operator.refusal(*words)
    done = operator.call(*words, "--force", "--dry-run")
    assert done.stdout == "no program reads it: nothing changes\nnothing was written\n"
    assert words[2] not in operator.recorded()
    done = operator.call(*words, "--force")
    assert done.returncode == 0
    assert "did you mean systems.kafka.samza.offset.default?" in done.stderr
    assert operator.recorded()[words[2]] == "oldest"


def test_a_file_is_compared_with_what_is_in_force(
    operator: Operator, running: RunningBackend
) -> None:
    """Each difference stands under what it needs; secrets are compared and not shown."""
    changed = {
        "job__container__count": "3",
        "my__own__password": "other",
        "yarn__queue": "fast",
        "stores__s__msg__serde": "json",
    }
    shown = operator.answer("config", "diff", **changed)
    assert shown == (
        "taken by the running job at once:\n"
        "  job.container.count: 2 -> 3\n"
        "taken by the running job and its running containers:\n"
        "  task.commit.ms: 77 -> (not set)\n"
        "taken by the running job, whose containers restart:\n"
        "  my.own.password: ******** -> ********\n"
        "from the next deployment:\n"
        "  yarn.queue: (not set) -> fast\n"
        "refused: the job has state; run-job --reset-state begins from nothing:\n"
        "  stores.s.msg.serde: string -> json\n"
    )
    as_json = json.loads(operator.answer("config", "diff", "--json", **changed))
    assert as_json["live"] == {"job.container.count": ["2", "3"]}
    running.becomes("another")
    assert operator.answer("config", "diff") == "no difference\n"


def test_inputs_by_regular_expression_are_looked_up(operator: Operator) -> None:
    """Where inputs matter the tool queries Kafka; a topic that is an input anyway is refused."""
    topic = operator.config["task.inputs"].removeprefix("kafka.")
    rewriter = {
        "job__config__rewriters": "r",
        "job__config__rewriter__r__class": "org.apache.samza.config.RegExTopicGenerator",
        "job__config__rewriter__r__system": "kafka",
        "job__config__rewriter__r__regex": f"{topic[:-1]}.",
    }
    assert "which task.inputs names already" in operator.refusal("config", "diff", **rewriter)
    found = operator.answer("config", "diff", **rewriter, task__inputs="kafka.other")
    assert f"  task.inputs: kafka.{topic} -> kafka.{topic},kafka.other\n" in found
    assert operator.answer("config", "get", "job.id", **rewriter) == "1\n"


def test_the_streams_records_are_shown(operator: Operator) -> None:
    """The latest of each key, or the last of all with deletions and damage; secrets masked."""
    operator.answer("config", "set", "a.key", "1")
    operator.answer("config", "set", "a.key", "--delete")
    shown = operator.answer("coordinator-stream", "show", "--type=set-config")
    assert "set-config  my.own.password = ********  (job-runner, " in shown
    assert "a.key" not in shown
    one = operator.answer("coordinator-stream", "show", "--key=Partition 1", "--json")
    types = [json.loads(line)["type"] for line in one.splitlines()]
    assert "set-task-container-assignment" in types
    last = operator.answer("coordinator-stream", "tail", "-n", "2").splitlines()
    assert [line.split("  ", 1)[1].split("  (")[0] for line in last] == [
        "set-config  a.key = 1",
        "set-config  a.key  deleted",
    ]
    assert SECRET in operator.call("coordinator-stream", "show", "--show-secrets").stdout


def test_a_value_acts_on_no_terminal_and_forges_no_line(operator: Operator) -> None:
    """Another program may have written it: an escape, a line break, the other direction."""
    value = "1\x1b[2J\x9b0m\r\nowner=mallory\u202e"
    operator.store.write([wire.set_config("my.key", value), wire.set_config("my.\x1b[1m", "2")])
    shown = r"1\u001b[2J\u009b0m\r\nowner=mallory\u202e"
    assert f"my.key={shown}\n" in operator.answer("config", "get")
    assert json.loads(operator.answer("config", "get", "--json"))["my.key"] == value
    for words in (
        ("config", "get", "my.key"),
        ("config", "get"),
        ("config", "diff"),
        ("coordinator-stream", "show"),
        ("coordinator-stream", "tail", "-n", "99"),
        ("coordinator-stream", "show", "--json"),
    ):
        text = operator.answer(*words)
        assert "mallory" in text, words
        assert all(c.isprintable() for c in text.replace("\n", "")), words
        listed = words != ("config", "get", "my.key")
        assert listed != any(line.startswith("owner=") for line in text.splitlines()), words


def test_a_tail_goes_on_with_new_records(operator: Operator) -> None:
    """--follow prints a record that is written later, and ends when it is interrupted."""
    operator.answer("config", "get", "job.name")  # the properties file is there
    arguments = [
        "coordinator-stream",
        "tail",
        "--follow",
        "-n",
        "0",
        f"--config-path={operator.file}",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", MODULE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(p for p in sys.path if p)},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stderr.readline()  # it reads
            is_there = False
            for number in range(60):  # the first ones may lie before the head that it read
                operator.store.write([wire.set_config("later", str(number))])
                is_there = bool(select.select([process.stdout], [], [], 1)[0])
                if is_there:
                    break
            process.send_signal(signal.SIGINT)
            assert is_there
            written = process.stdout.readline()
            process.wait(30)
        finally:
            process.kill()
    assert "set-config  later = " in written
    assert process.returncode == 130


def test_a_kafka_that_is_away_gives_one_line(operator: Operator) -> None:
    """After one that says what it waits for. A job that never ran has one too."""
    away = {"systems__kafka__consumer__bootstrap__servers": "127.0.0.1:1"}
    commands = (("job-model",), ("config", "get"), ("locality",), ("coordinator-stream", "show"))
    with ThreadPoolExecutor(len(commands)) as pool:  # each waits as long as it may
        done = list(pool.map(lambda words: operator.call(*words, **away), commands))
    for tool in done:
        assert (tool.returncode, tool.stdout) == (1, "")
        expected = r"no answer from Kafka at .* more\nerror: .*Kafka at 127\.0\.0\.1:1 .*\n"
        assert re.fullmatch(expected, tool.stderr)
    never = operator.refusal("job-model", job__name="never-ran")
    assert "run the job once with run-job" in never


def test_a_checkpoint_is_not_set_while_the_job_runs(
    operator: Operator, running: RunningBackend
) -> None:
    """Its containers read theirs when they start, and write on from where they are."""
    assert running.name == operator.config["job.name"]
    stream = operator.config["task.inputs"]
    words = ("checkpoint", "set", "--task", "Partition 0", f"--ssp={stream}.0", "--latest")
    error = operator.refusal(*words)
    assert "the job runs (application_1_2)" in error
    assert "--operation=kill" in error
