"""Each check of Kafka has a cluster that it refuses, and one that it does not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from homeport.appmaster.doctor.finding import Level
from homeport.appmaster.doctor.kafka_checks import (
    TRANSACTION_STATE,
    KafkaFacts,
    PartitionFacts,
    TopicFacts,
    TopicUse,
    check_brokers,
    check_topic,
    check_transaction_state,
)

GOOD = {"transactional.id.expiration.ms": "604800000", "transaction.max.timeout.ms": "900000"}
ALL = frozenset({1, 2, 3})
STATE = TopicUse(
    "log", "changelog", frozenset({"READ", "WRITE"}), is_state=True, is_compacted=True, is_made=True
)
INPUT = TopicUse("in", "input", frozenset({"READ"}))


def cluster(topic: TopicFacts | None = None, broker: Mapping[str, str] = GOOD) -> KafkaFacts:
    """Three brokers, and one topic under either name."""
    topics = {} if topic is None else {"log": topic, "in": topic, TRANSACTION_STATE: topic}
    return KafkaFacts("kafka", dict.fromkeys(ALL, broker), topics)


def topic(
    in_sync: frozenset[int] = ALL,
    replicas: frozenset[int] = ALL,
    leader: int | None = 1,
    rights: frozenset[str] | None = frozenset({"READ", "WRITE"}),
    **config: str,
) -> TopicFacts:
    """One partition; by default in order."""
    properties = {"cleanup.policy": "compact", "min.insync.replicas": "2"} | {
        name.replace("_", "."): value for name, value in config.items()
    }
    return TopicFacts((PartitionFacts(0, leader, replicas, in_sync),), properties, rights)


def test_a_cluster_in_order_has_nothing_to_change() -> None:
    """Each finding says ok, and none has a remedy."""
    found = [*check_brokers(cluster(), 10_000), *check_topic(cluster(topic()), STATE)]
    assert {f.level for f in found} == {Level.OK}
    assert all(not f.remedy for f in found)


def test_one_broker_is_a_risk() -> None:
    """The warning says how many there are."""
    facts = KafkaFacts("kafka", {1: GOOD})
    found = next(check_brokers(facts, 10_000))
    assert (found.check, found.level) == ("kafka.brokers", Level.WARNING)
    assert "1 of 3" in found.found


@pytest.mark.parametrize(
    ("broker", "check", "level"),
    [
        (
            GOOD | {"transactional.id.expiration.ms": "3600000"},
            "kafka.transactional-id-expiration",
            Level.WARNING,
        ),
        (GOOD | {"transaction.max.timeout.ms": "9999"}, "kafka.transaction-timeout", Level.ERROR),
    ],
)
def test_a_broker_that_hinders_transactions(
    broker: dict[str, str], check: str, level: Level
) -> None:
    """There is one finding for each broker, with its remedy."""
    found = [f for f in check_brokers(cluster(broker=broker), 10_000) if f.level is not Level.OK]
    assert {(f.check, f.level) for f in found} == {(check, level)}
    assert len(found) == len(ALL)
    assert all(f.remedy for f in found)


def test_a_broker_that_keeps_its_settings_back_is_not_judged() -> None:
    """Nothing is guessed of settings that are not shown."""
    found = list(check_brokers(cluster(broker={}), 10_000))
    assert [f.check for f in found] == ["kafka.brokers"]


@pytest.mark.parametrize(
    ("facts", "use", "check", "level"),
    [
        (topic(leader=None, in_sync=frozenset()), INPUT, "kafka.leader", Level.ERROR),
        (topic(in_sync=frozenset({1})), INPUT, "kafka.in-sync", Level.ERROR),
        (topic(in_sync=frozenset({1, 3})), INPUT, "kafka.in-sync", Level.WARNING),
        (
            topic(replicas=frozenset({2}), in_sync=frozenset({2}), min_insync_replicas="1"),
            STATE,
            "kafka.replication",
            Level.WARNING,
        ),
        (topic(min_insync_replicas="1"), STATE, "kafka.min-in-sync", Level.WARNING),
        (topic(min_insync_replicas="3"), STATE, "kafka.min-in-sync", Level.WARNING),
        (
            topic(unclean_leader_election_enable="true"),
            STATE,
            "kafka.unclean-election",
            Level.WARNING,
        ),
        (topic(cleanup_policy="delete"), STATE, "kafka.cleanup-policy", Level.ERROR),
        (
            topic(cleanup_policy="delete", retention_ms="3600000"),
            INPUT,
            "kafka.retention",
            Level.WARNING,
        ),
        (topic(rights=frozenset({"READ"})), STATE, "kafka.acl", Level.ERROR),
    ],
)
def test_a_topic_with_a_fault(facts: TopicFacts, use: TopicUse, check: str, level: Level) -> None:
    """The check of that name finds it, and says what to change."""
    found = {f.check: f for f in check_topic(cluster(facts), use)}
    assert found[check].level is level
    assert found[check].remedy


@pytest.mark.parametrize("retention", ["-1", "86400000", "", "x"])
def test_a_retention_that_is_long_enough_or_not_known(retention: str) -> None:
    """A day is enough; what is no number is not judged."""
    facts = cluster(topic(cleanup_policy="delete", retention_ms=retention))
    assert "kafka.retention" not in {f.check for f in check_topic(facts, INPUT)}


def test_a_right_that_is_missing_is_named_as_the_tool_of_kafka_has_it() -> None:
    """``kafka-acls`` knows DescribeConfigs, and no Describe_Configs."""
    use = TopicUse("in", "input", frozenset({"READ", "DESCRIBE_CONFIGS"}))
    found = {f.check: f for f in check_topic(cluster(topic(rights=frozenset({"READ"}))), use)}
    assert found["kafka.acl"].remedy == (
        "grant it by kafka-acls --add --topic in --operation DescribeConfigs"
    )


def test_rights_that_brokers_do_not_say_are_not_judged() -> None:
    """An older broker does not list them."""
    found = check_topic(cluster(topic(rights=None)), STATE)
    assert "kafka.acl" not in {f.check for f in found}


def test_an_absent_topic_is_an_error_unless_the_job_makes_it() -> None:
    """A changelog is to be made, an input is not."""
    (made,) = check_topic(cluster(), STATE)
    (absent,) = check_topic(cluster(), INPUT)
    assert (made.level, absent.level) == (Level.OK, Level.ERROR)
    assert absent.remedy


def test_the_topic_of_transactions_is_looked_at_where_there_is_one() -> None:
    """Kafka makes it with the first transaction."""
    assert not list(check_transaction_state(cluster()))
    thin = topic(in_sync=frozenset({1}))
    levels = {f.level for f in check_transaction_state(cluster(thin))}
    assert Level.ERROR in levels
