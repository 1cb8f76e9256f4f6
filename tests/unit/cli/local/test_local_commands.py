"""``homeport local``: what it says and refuses, without a cluster."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from confluent_kafka import KafkaError, KafkaException

from homeport.cli import main as homeport
from homeport.cli.local import local_commands, topic_commands
from homeport.cli.local.common import named
from homeport.config.errors import ConfigError
from homeport.local_cluster import processes
from homeport.local_cluster.cluster import NAME_VARIABLE
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.hadoop_conf import SCHEDULERS
from homeport.local_cluster.layout import Layout, Record, write_record
from homeport.local_cluster.net.addresses import Addresses


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No cluster of the user is seen; SIGTERM keeps its meaning."""
    monkeypatch.setenv("HOMEPORT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv(NAME_VARIABLE, raising=False)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    return tmp_path


def test_each_scheduler_of_a_cluster_can_be_chosen() -> None:
    """The option has the names that clusters know."""
    assert [s.value for s in local_commands.Scheduler] == list(SCHEDULERS)


def test_the_status_of_no_cluster_says_so(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    """It is no error, and says where logs of an earlier one would be."""
    homeport.run(["local", "status", "--name", "none"])
    assert capsys.readouterr().out.splitlines() == [
        "cluster none: down",
        f"  logs             {cache}/clusters/none/logs",
    ]


def test_a_cluster_that_is_down_can_be_taken_down(capsys: pytest.CaptureFixture[str]) -> None:
    """It says that there was none."""
    homeport.run(["local", "down"])
    assert capsys.readouterr().out == "no cluster dev is up\n"


def _runs(cache: Path, name: str, phase: Literal["up", "starting"] = "up") -> None:
    """A cluster of that name is there, as far as its record and its processes show."""
    daemons = {"kafka": processes.own()}
    layout = Layout(cache, name)
    layout.root.mkdir(parents=True)
    addresses = Addresses("127.77.1", {}, {})
    write_record(layout.state, Record("id", phase, addresses, "/java", processes.own(), daemons))


def test_a_refusal_names_the_clusters_that_are_up(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that start, or whose record cannot be read, are not up."""
    _runs(cache, "newuser")
    _runs(cache, "eve")
    _runs(cache, "early", "starting")
    (cache / "clusters" / "broken").mkdir()
    (cache / "clusters" / "broken" / "state.json").write_text("{", encoding="utf-8")
    (cache / "clusters" / "folder" / "state.json").mkdir(parents=True)
    with pytest.raises(ClusterError) as caught:
        homeport.run(["local", "read", "orders"])
    assert str(caught.value) == (
        "no cluster dev is up, but by --name: eve, newuser; start it: homeport local up --name dev"
    )
    homeport.run(["local", "down"])
    assert capsys.readouterr().out == "no cluster dev is up, but by --name: eve, newuser\n"


def test_a_shell_has_a_cluster_of_its_own(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ``local env``; --name wins, and a hint names what the shell does not mean."""
    _runs(cache, "newuser")
    homeport.run(["local", "env", "--name", "newuser"])
    assert "export HOMEPORT_CLUSTER='newuser'" in capsys.readouterr().out.splitlines()
    assert (named("dev"), named("newuser")) == ("", " --name newuser")
    monkeypatch.setenv(NAME_VARIABLE, "newuser")
    homeport.run(["local", "env"])
    assert "export HOMEPORT_CLUSTER='newuser'" in capsys.readouterr().out.splitlines()
    with pytest.raises(ClusterError, match="no cluster dev is up"):
        homeport.run(["local", "env", "--name", "dev"])
    assert (named("dev"), named("newuser")) == (" --name dev", " --name newuser")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["env"], "no cluster dev is up; start it: homeport local up --name dev"),
        (["kill-node", "nm1"], "no cluster dev is up; start it: homeport local up --name dev"),
        (["status", "--name", "A_b"], "cluster name 'A_b' must be 1 to 40 lower-case letters"),
        (["up", "--nodes", "-1"], "a cluster has 0 to 200 nodes, not -1"),
        (["up", "--brokers", "6"], "a cluster has 1 to 5 brokers, not 6"),
        (["logs"], "no logs of cluster dev in "),
    ],
)
def test_what_cannot_be_done_is_one_line(words: list[str], error: str) -> None:
    """Before anything is started."""
    with pytest.raises(ClusterError) as caught:
        homeport.run(["local", *words])
    assert str(caught.value).startswith(error)
    assert "\n" not in str(caught.value)


def test_a_topic_has_a_name_that_kafka_takes() -> None:
    """The rule comes before the look for a cluster."""
    with pytest.raises(ConfigError, match=r"TOPIC = 'a b': a topic's name has at most 249 letters"):
        homeport.run(["local", "send", "a b", "x"])


def _status(nodes: int = 3, brokers: int = 1, zookeeper: str | None = None) -> dict[str, object]:
    return {"name": "dev", "nodes": [{}] * nodes, "brokers": [{}] * brokers, "zookeeper": zookeeper}


def test_a_running_cluster_is_not_taken_for_another_one() -> None:
    """What the command states must be so; what it leaves open may be as it is."""
    local_commands._refuse_another_form(_status(), None, None, zookeeper=False)
    local_commands._refuse_another_form(_status(1, 3, "a:1"), 1, 3, zookeeper=True)
    with pytest.raises(ClusterError) as caught:
        local_commands._refuse_another_form(_status(), 2, 3, zookeeper=True)
    assert str(caught.value) == (
        "cluster dev is up already, and otherwise (--nodes 2: it has 3; --brokers 3: it has 1; "
        "--zookeeper: it has none); take it down by homeport local down, or use another --name"
    )


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ('ann={"a": "b=c"}', (b"ann", b'{"a": "b=c"}')),
        ("ann=", (b"ann", None)),
        ("=5", (None, b"5")),
        ("plain", (None, b"plain")),
    ],
)
def test_a_record_is_what_is_before_and_after_the_sign(
    text: str, record: tuple[bytes | None, bytes | None]
) -> None:
    """The first = counts; a key without a value is a record that deletes it."""
    assert topic_commands.pair(text) == record


@pytest.mark.parametrize(
    ("key", "value", "text", "as_json"),
    [
        (b"k", b"v", "k\tv", '{"partition":1,"offset":7,"key":"k","value":"v"}'),
        (None, b"\xff\x01", "\t0xff01", '{"partition":1,"offset":7,"key":null,"value":"0xff01"}'),
        (b"k", None, "k\t", '{"partition":1,"offset":7,"key":"k","value":null}'),
    ],
)
def test_a_record_is_one_line(
    key: bytes | None, value: bytes | None, text: str, as_json: str
) -> None:
    """Text as it is, other bytes in hexadecimal digits, nothing where there is none."""
    line = topic_commands.record_line
    assert line((1, 7), key, value, as_json=False) == text
    assert line((1, 7), key, value, as_json=True) == as_json


def test_a_record_that_a_template_would_refuse_is_sent_with_a_warning() -> None:
    """One line for each kind, however many records: how many, and the first."""
    remarks = topic_commands.SendRemarks()
    texts = ["plain", 'ann={"a": 5}', "bob=", "eve=x" + "y" * 50, '={"a": 1}']
    assert [remarks.noted(text) for text in texts] == [topic_commands.pair(text) for text in texts]
    no_key, no_json = remarks.lines()
    assert no_key == "2 of 5 records sent without a key, which KEY=VALUE gives; the first: 'plain'"
    kind = "with a value that is no JSON, which most jobs read"
    assert no_json == f"2 of 5 records sent {kind}; the first: 'plain'"
    only = topic_commands.SendRemarks()
    only.noted("eve=" + "x" * 50)
    assert next(only.lines()).endswith(f"; the first: 'eve={'x' * 36}'")


def test_a_value_that_no_reader_takes_is_sent_with_a_warning() -> None:
    """JSON that is nested more deeply than Python's readers go."""
    remarks = topic_commands.SendRemarks()
    text = "ann=" + "[" * 100_000 + "]" * 100_000
    assert remarks.noted(text) == topic_commands.pair(text)
    assert next(remarks.lines()).startswith("1 of 1 records sent with a value that is no JSON")


def test_records_that_a_template_reads_get_no_warning() -> None:
    """Keys, with JSON or without a value."""
    remarks = topic_commands.SendRemarks()
    for text in ("ann=5", 'ann={"a": "b=c"}', "ann="):
        remarks.noted(text)
    assert list(remarks.lines()) == []


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of a wait, which the test sets."""
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    return clock


def test_a_wait_for_records_says_how_many_there_are_and_ends(
    now_s: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every 5 s; each record begins the time for the next one."""
    wait = topic_commands.Wait("totals", 3, 60.0)
    for passed_s in (104.0, 105.0, 106.0, 110.0):
        now_s[0] = passed_s
        wait.goes_on()
    now_s[0] = 150.0
    wait.came()
    now_s[0] = 209.0
    wait.goes_on()
    assert capsys.readouterr().err.splitlines() == [
        *["0 of 3 records; Ctrl-C ends"] * 2,
        "1 of 3 records; Ctrl-C ends",
    ]
    now_s[0] = 210.0
    with pytest.raises(ClusterError) as caught:
        wait.goes_on()
    assert str(caught.value) == (
        "totals: 1 of 3 records, and none further within 60 s (--timeout); "
        "homeport status --config-path=FILE shows whether the job runs"
    )


def test_a_wait_without_an_end_is_silent(
    now_s: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """As of --follow, which prints what comes."""
    wait = topic_commands.Wait("totals", None, None)
    now_s[0] = 9999.0
    wait.goes_on()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("limit_s", "answers_s"),
    [(None, [30.0, 30.0]), (60.0, [30.0, 3.0]), (2.0, [2.0, 2.0]), (0.0, [1.0, 1.0])],
)
def test_a_wait_bounds_what_kafka_takes(
    now_s: list[float], limit_s: float | None, answers_s: list[float]
) -> None:
    """At its beginning, and at its end, where Kafka is given a moment."""
    wait = topic_commands.Wait("totals", 3, limit_s)
    found_s = [wait.answer_s()]
    now_s[0] += limit_s or 0.0
    assert [*found_s, wait.answer_s()] == answers_s


@pytest.mark.parametrize(("answers", "error"), [(1, KafkaException), (2, ClusterError)])
def test_a_kafka_that_is_away_is_not_blamed_on_the_job(
    now_s: list[float], answers: int, error: type[Exception]
) -> None:
    """A wait without a record ends with a request to Kafka, which takes no longer than the wait."""
    asked_s = []

    def list_topics(timeout: float) -> object:
        asked_s.append(timeout)
        if len(asked_s) > answers:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics={"totals": SimpleNamespace(partitions={0: None})})

    def poll(timeout: float) -> None:
        now_s[0] += timeout

    kafka: Any = SimpleNamespace(list_topics=list_topics, poll=poll, assign=lambda _: None)
    wait = topic_commands.Wait("totals", 3, 2.0)
    with pytest.raises(error):
        next(topic_commands._messages(kafka, "totals", wait, waits=True))
    assert (now_s[0], asked_s) == (102.0, [2.0, 2.0])
