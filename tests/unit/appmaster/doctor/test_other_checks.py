"""Clocks, nodes, settings of YARN, and the topics that a job uses."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.doctor.clock_checks import ahead_s, check_clocks
from homeport.appmaster.doctor.finding import Level
from homeport.appmaster.doctor.topic_uses import topic_uses
from homeport.appmaster.doctor.yarn_checks import check_fit, check_names, check_nodes
from homeport.appmaster.yarn.host_affinity import ASYNCHRONOUS, ClusterFacts
from homeport.appmaster.yarn.scheduler import CAPACITY, FIFO, Scheduler
from homeport.config.config import Config
from homeport.job_coordinator.model.ids import Host

DATE, DATE_S = "Wed, 25 Nov 2026 12:00:00 GMT", 1795608000.0
JOB = {
    "job.name": "j",
    "job.default.system": "kafka",
    "job.host-affinity.enabled": "true",
    "task.inputs": "kafka.a, other.b",
    "task.broadcast.inputs": "kafka.rules#0",
    "task.outputs": "kafka.out",
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.s-log",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "string",
    "stores.t.factory": "rocksdb",
    "stores.t.key.serde": "string",
    "stores.t.msg.serde": "string",
}


@pytest.mark.parametrize(
    ("date", "before_s", "after_s", "ahead"),
    [
        (DATE, DATE_S, DATE_S + 0.1, 0.0),
        (DATE, DATE_S + 0.9, DATE_S + 1.5, 0.0),
        (DATE, DATE_S - 10, DATE_S - 9, 9.0),
        (DATE, DATE_S + 10, DATE_S + 11, -9.0),
        ("soon", DATE_S, DATE_S, None),
    ],
)
def test_by_how_much_a_clock_is_ahead(
    date: str, before_s: float, after_s: float, ahead: float | None
) -> None:
    """An HTTP date stands for a whole second."""
    assert ahead_s(date, before_s, after_s) == ahead


def test_clocks_by_their_difference() -> None:
    """Two seconds are a warning, Kerberos' five minutes an error."""
    found = check_clocks({"a": 0.0, "b": -3.0, "c": 400.0, "d": None})
    levels = [Level.OK, Level.WARNING, Level.ERROR, Level.UNKNOWN]
    seen = list(found)
    assert [f.level for f in seen] == levels
    assert "behind" in seen[1].found
    assert "ahead" in seen[2].found


def host(name: str, *, is_live: bool = True) -> HostReport:
    """One of 8 GB."""
    return HostReport(Host(name), None, 8192, 8, 8192, 8, is_live)


@pytest.mark.parametrize(
    ("hosts", "levels"),
    [
        ([host("a"), host("b")], [Level.OK]),
        ([host("a")], [Level.WARNING]),
        ([host("a"), host("b", is_live=False)], [Level.WARNING, Level.WARNING]),
        ([host("b", is_live=False)], [Level.ERROR]),
        ([host("a"), host("c"), host("b", is_live=False)], [Level.WARNING]),
    ],
)
def test_nodes(hosts: list[HostReport], levels: list[Level]) -> None:
    """One host is a risk, none an error; one that is away is named."""
    assert [f.level for f in check_nodes(hosts)] == levels


def test_a_machine_under_two_names() -> None:
    """Also where its old name is not given up yet; each address once."""
    addresses = {"a": "10.0.0.1", "d": "10.0.0.2", "c": "10.0.0.2", "b": "10.0.0.3"}
    (finding,) = check_names({Host(name): address for name, address in addresses.items()})
    assert (finding.level, finding.subject) == (Level.WARNING, "10.0.0.2")
    assert finding.found.startswith("c and d have this address")


def test_a_scheduler_that_cannot_bring_containers_home_is_an_error() -> None:
    """Daemons that keep their settings back are unknown."""
    found = list(check_fit(Config(JOB), ClusterFacts(Scheduler(FIFO, ()))))
    assert found[0].level is Level.ERROR
    assert found[0].remedy
    assert [f.level for f in found[1:]] == [Level.UNKNOWN, Level.UNKNOWN]


def test_a_cluster_that_has_what_host_affinity_needs() -> None:
    """One finding says so."""
    config = Config(JOB | {"job.host-affinity.enabled": "false"})
    found = list(check_fit(config, ClusterFacts(Scheduler(FIFO, ()))))
    assert (found[0].check, found[0].level) == ("yarn.settings", Level.OK)


def test_a_daemon_that_shows_its_settings_is_judged_by_them() -> None:
    """What makes containers come home late is a warning."""
    settings = {ASYNCHRONOUS: "false"}
    facts = ClusterFacts(
        Scheduler(CAPACITY, ()), resource_manager=settings, node={"a": "b"}, queues_file=settings
    )
    found = list(check_fit(Config(JOB), facts))
    assert Level.WARNING in {f.level for f in found}
    assert "yarn.settings" in {f.check for f in found}


def test_the_topics_of_a_job_by_system() -> None:
    """Each topic once; a store without a changelog has none."""
    found = topic_uses(Config(JOB))
    assert {s: [use.name for use in uses] for s, uses in found.items()} == {
        "kafka": [
            "__samza_coordinator_j_1",
            "__samza_checkpoint_ver_1_for_j_1",
            "s-log",
            "a",
            "rules",
            "out",
        ],
        "other": ["b"],
    }
    by_name = {use.name: use for use in found["kafka"]}
    assert by_name["s-log"].is_compacted
    assert not by_name["out"].is_made


def test_whose_configuration_a_job_reads_it_must_be_allowed_to() -> None:
    """State and what fills an adjunct store; of other topics none is needed."""
    store = {
        "stores.rules.factory": "org.apache.samza.storage.kv.RocksDbKeyValueStorageEngineFactory",
        "stores.rules.key.serde": "string",
        "stores.rules.msg.serde": "string",
        "stores.rules.adstore.input": "kafka.rules",
    }
    uses = topic_uses(Config(JOB | store))["kafka"]
    assert {use.name for use in uses if "DESCRIBE_CONFIGS" in use.rights} == {
        "__samza_coordinator_j_1", "__samza_checkpoint_ver_1_for_j_1", "s-log", "rules"
    }  # fmt: skip


def test_a_repartition_is_written_read_and_purged() -> None:
    """Its topic is made by the job, and its rights are those that all three take."""
    uses = topic_uses(Config(JOB | {"task.repartition.by-place": "inputs"}))["kafka"]
    (use,) = [use for use in uses if use.what == "repartition by-place"]
    assert use.is_made
    assert {"READ", "WRITE", "DELETE"} <= use.rights


def test_a_job_without_checkpoints_that_makes_its_outputs() -> None:
    """It has no checkpoint topic, and no output that must exist."""
    dead = {"task.dead.letter.stream": "kafka.dead", "task.drop.deserialization.errors": "true"}
    made = {"task.outputs.create.partitions": "2", "task.checkpoint.factory": "none"}
    by_name = {use.name: use for use in topic_uses(Config(JOB | dead | made))["kafka"]}
    assert by_name["out"].is_made
    assert by_name["dead"].is_made
    assert by_name["dead"].key == "task.dead.letter.stream"
    assert "__samza_checkpoint_ver_1_for_j_1" not in by_name
