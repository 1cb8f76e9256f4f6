"""A job on three brokers of which some fail: its result is exact, and nothing is charged.

Each topic has three replicas, of which two must be in sync. A broker that is silent is fenced after
4 s; a transaction has more time than that where a new leader is enough to go on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broker_faults import Watched
from confluent_kafka import Producer
from stream_containers import COUNTER, make_job
from suites import long

from homeport.config.settings.sections import TaskConfig
from homeport.local_cluster.cluster import LocalCluster

PATIENT = {"systems.kafka.producer.transaction.timeout.ms": "60000"}
"""No transaction runs out of time by a fault that only changes leaders."""
FAULT_S = 10.0
"""How long a fault lasts; nothing is waited for by it."""
SHORTAGE_S = 15.0
"""As above: longer than a transaction's time."""
Make = Callable[..., Watched]


@pytest.fixture
def make(brokers: LocalCluster, tmp_path: Path) -> Iterator[Make]:
    """Makes a job that has counted 20 words; at the end all brokers run again."""
    made: list[Watched] = []
    numbers = itertools.count(1)

    def make_one(**more: str) -> Watched:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        job = make_job(brokers.bootstrap_servers, folder, COUNTER, more)
        made.append(Watched(job, brokers))
        made[-1].produce(20)
        made[-1].counts_all()
        return made[-1]

    yield make_one
    for watched in made:
        watched.job.close()
    states = [broker["state"] for broker in brokers.status()["brokers"]]
    if "PAUSED" in states:
        brokers.resume_kafka()
    if "DOWN" in states:
        brokers.start_kafka()


def topic_of(watched: Watched, role: str) -> str:
    """One of the job's topics."""
    if role == "checkpoint":
        return TaskConfig.of(watched.job.config).checkpoint_topic
    return watched.job.topic(role)


@pytest.mark.parametrize("role", ["changelog", *map(long, ("checkpoint", "in", "controller"))])
def test_a_leader_that_is_killed_is_replaced(make: Make, role: str) -> None:
    """No container restarts; a container that starts while there is no leader comes up as well."""
    watched = make(**PATIENT)
    is_controller = role == "controller"
    victim = watched.controller() if is_controller else watched.leader(topic_of(watched, role))
    watched.brokers.stop_kafka(victim)
    watched.produce(20)
    watched.counts_all()
    assert not is_controller or watched.controller() != victim
    watched.brokers.start_kafka(broker=victim)
    watched.produce(20)
    watched.counts_all()
    assert watched.ends == []
    watched.stop()


@pytest.mark.long
def test_a_container_starts_while_a_partition_has_no_leader(make: Make) -> None:
    """It waits for the next one, which may not know its high watermark at once; it restores all."""
    watched = make(**PATIENT)
    watched.stop()
    watched.forget_state()
    victim = watched.leader(watched.job.topic("changelog"))
    watched.brokers.stop_kafka(victim)
    watched.tend()
    watched.produce(20)
    watched.counts_all()
    watched.brokers.start_kafka(broker=victim)
    assert watched.ends == []
    watched.stop()


def test_too_few_replicas_in_sync_are_waited_for(make: Make) -> None:
    """A container that starts then does not restart; its log says what is missing.

    It looks before its first transaction.
    """
    watched = make()
    watched.stop()
    changelog = watched.job.topic("changelog")
    watched.requires(changelog, 3)
    victim = watched.leader(changelog)
    watched.brokers.stop_kafka(victim)
    # One that starts before the broker is fenced sees all replicas in sync.
    watched.until(lambda: len(watched.partition(changelog).isrs) < 3, tends=False)
    watched.produce(20)
    # Of the partitions that the first batch writes to: it may have records of one alone.
    lacks = f"topic {changelog!r} partition [01] has 2 of 3 replicas in sync, and its min.insync"
    line = re.compile(f"s so far: {lacks}.replicas is 3: start the brokers {victim}, or")
    # A slow machine may need more than SHORTAGE_S to come to the first transaction.
    watched.until(lambda: line.search(watched.log()) is not None)
    watched.holds_out(SHORTAGE_S)
    watched.brokers.start_kafka(broker=victim)
    watched.counts_all()
    assert watched.ends == []
    watched.stop()


def test_a_container_waits_for_a_leader_that_does_not_know_its_high_watermark(make: Make) -> None:
    """Kafka's KIP-966: it moves only with enough replicas in sync; until then there is no end."""
    watched = make()
    watched.stop()
    changelog = watched.job.topic("changelog")
    watched.requires(changelog, 3)
    first = watched.leader(changelog)
    follower = next(b for b in (1, 2, 3) if b != first)
    watched.brokers.stop_kafka(follower)
    watched.until(lambda: len(watched.partition(changelog).isrs) < 3, tends=False)
    # Only a record that does not ask for all replicas gets past the high watermark now.
    producer = Producer({"bootstrap.servers": watched.job.servers, "acks": 1})
    word, count = next(iter(watched.job.table("changelog").items()))
    producer.produce(changelog, count, word, partition=0)
    assert producer.flush(FAULT_S) == 0
    heir = ({1, 2, 3} - {first, follower}).pop()
    sizes = watched.replica_sizes
    watched.until(lambda: sizes(changelog)[heir] == sizes(changelog)[first], tends=False)
    watched.brokers.stop_kafka(first)
    watched.brokers.start_kafka(broker=follower)
    watched.until(lambda: "reading offsets waits for Kafka, for " in watched.log())
    lacks = f"topic {changelog!r} partition 0 has 2 of 3 replicas in sync, and its min.insync"
    assert f"{lacks}.replicas is 3: start the brokers {first}, or" in watched.log()
    watched.brokers.start_kafka(broker=first)
    watched.produce(20)
    watched.counts_all()
    assert watched.ends == []
    watched.stop()


@pytest.mark.long
def test_too_few_replicas_in_sync_end_a_transaction_that_has_begun(make: Make) -> None:
    """Uncharged, in a line that says what is missing; the next container waits in its start.

    The lost broker decides no transactions: a writer whose coordinator goes looks at the replicas
    before it begins, and waits.
    """
    watched = make()
    changelog = watched.job.topic("changelog")
    watched.requires(changelog, 3)
    others = {watched.leader(changelog), watched.coordinator()}
    victim = next(b for b in (1, 2, 3) if b not in others)
    watched.brokers.stop_kafka(victim)
    watched.produce(20)
    watched.until(lambda: bool(watched.ends))
    lacks = "partition [01] has 2 of 3 replicas in sync, and its min.insync.replicas is 3"
    line = f"topic {changelog!r} {lacks}: start the brokers {victim}, or lower"
    assert re.search(line, watched.ends[0])
    watched.holds_out(SHORTAGE_S)
    assert len(watched.ends) == 1
    watched.brokers.start_kafka(broker=victim)
    watched.counts_all()
    watched.stop()


@pytest.mark.long
def test_all_brokers_die_at_once(make: Make) -> None:
    """SIGKILL of all three: what was committed is there when they are back."""
    watched = make(**PATIENT)
    watched.brokers.stop_kafka()
    watched.brokers.start_kafka()
    watched.produce(20)
    watched.counts_all()
    watched.stop()


@pytest.mark.parametrize("role", ["changelog", long("checkpoint"), long("in")])
def test_a_leader_that_stands_still_is_replaced(make: Make, role: str) -> None:
    """And does no harm when it goes on, believing that it leads; no end is charged."""
    watched = make()
    victim = watched.leader(topic_of(watched, role))
    watched.brokers.pause_kafka(victim)
    watched.produce(20)
    watched.holds_out(SHORTAGE_S)
    watched.brokers.resume_kafka(victim)
    watched.produce(20)
    watched.counts_all()
    watched.stop()


@pytest.mark.long
@pytest.mark.parametrize("orderly", [True, False], ids=["SIGTERM", "SIGKILL"])
def test_each_broker_restarts_in_turn(make: Make, *, orderly: bool) -> None:
    """No container restarts."""
    watched = make(**PATIENT)
    for broker in (1, 2, 3):
        watched.brokers.stop_kafka(broker, orderly=orderly)
        watched.produce(20)
        watched.counts_all()
        watched.brokers.start_kafka(broker=broker)
        watched.produce(20)
        watched.counts_all()
        watched.until(lambda: len(watched.partition(watched.job.topic("changelog")).isrs) == 3)
    assert watched.ends == []
    watched.stop()


@pytest.mark.long
def test_two_brokers_are_away_for_longer_than_a_transaction_takes(make: Make) -> None:
    """The one that is left answers, and takes nothing: it is no leader of most controllers."""
    watched = make()
    changelog = watched.job.topic("changelog")
    left = watched.leader(changelog)
    for broker in {1, 2, 3} - {left}:
        watched.brokers.stop_kafka(broker)
    watched.holds_out(SHORTAGE_S)
    watched.brokers.start_kafka()
    watched.produce(20)
    watched.counts_all()
    watched.stop()
