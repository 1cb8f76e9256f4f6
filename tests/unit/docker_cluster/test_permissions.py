"""The rights of Kafka's users in a cluster with locks."""

from __future__ import annotations

import producer
from confluent_kafka.admin import ResourceType
from docker_cluster.permissions import RULES


def test_the_producer_may_make_each_of_its_topics() -> None:
    """And no other; a topic without a right would end the demo at its first step."""
    may = {
        rule.name
        for rule in RULES["producer"]
        if rule.resource == ResourceType.TOPIC and "CREATE" in rule.operations
    }
    assert may == {topic.topic for topic in producer.new_topics()}
