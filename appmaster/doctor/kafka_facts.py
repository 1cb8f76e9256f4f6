"""Asks the brokers of a system about themselves and a job's topics."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Node, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    DescribeClusterResult,
    ResourceType,
    TopicDescription,
)

from homeport.appmaster.doctor.kafka_checks import KafkaFacts, PartitionFacts, TopicFacts
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.topics import CONTACT_S, TopicAdmin

_T = TypeVar("_T")
_TIMEOUT_S = 10.0


def kafka_facts(system: SystemConfig, topics: Sequence[str]) -> KafkaFacts:
    """Return the brokers of ``system``, and those of ``topics`` that exist.

    A broker's configuration is empty where this user has no right to read it.

    UnavailableError: no broker answers.
    """
    TopicAdmin(system, CONTACT_S).require_reachable()
    asking = _Asking(system)
    brokers = asking.brokers()
    return KafkaFacts(
        system.name,
        {number: asking.config(ResourceType.BROKER, str(number)) for number in brokers},
        {name: found for name in topics if (found := asking.topic(name)) is not None},
    )


class _Asking:
    def __init__(self, system: SystemConfig) -> None:
        self._system = system
        self._admin: AdminClient = clients.admin(system)

    def brokers(self) -> list[int]:
        what = "asking for its brokers"
        future: Future[DescribeClusterResult] = self._admin.describe_cluster(
            request_timeout=_TIMEOUT_S
        )
        return sorted(node.id for node in self._answer(future, what).nodes)

    def config(self, kind: ResourceType, name: str) -> dict[str, str]:
        resource = ConfigResource(kind, name)
        futures: dict[ConfigResource, Future[dict[str, Any]]] = self._admin.describe_configs(
            [resource], request_timeout=_TIMEOUT_S
        )
        try:
            entries = futures[resource].result(_TIMEOUT_S + 1)
        except (KafkaException, TimeoutError):
            return {}  # this user has no right to read it; the other facts are checked
        return {key: entry.value for key, entry in entries.items() if entry.value is not None}

    def topic(self, name: str) -> TopicFacts | None:
        futures: dict[str, Future[TopicDescription]] = self._admin.describe_topics(
            TopicCollection([name]), request_timeout=_TIMEOUT_S, include_authorized_operations=True
        )
        try:
            found = self._answer(futures[name], f"asking for topic {name!r}")
        except _AbsentError:
            return None
        return TopicFacts(
            tuple(
                PartitionFacts(
                    partition.id,
                    _id_of(partition.leader),
                    frozenset(node.id for node in partition.replicas),
                    frozenset(node.id for node in partition.isr),
                )
                for partition in found.partitions
            ),
            self.config(ResourceType.TOPIC, name),
            frozenset(right.name for right in found.authorized_operations or ()) or None,
        )

    def _answer(self, future: Future[_T], what: str) -> _T:
        try:
            return future.result(_TIMEOUT_S + 1)
        except KafkaException as exception:
            failure = clients.error_of(exception)
            absent = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED}
            if failure.code() in absent:
                raise _AbsentError from None
            raise clients.unavailable(self._system, what, failure) from None
        except TimeoutError:
            why = f"no answer within {_TIMEOUT_S:g} s"
            raise clients.unavailable(self._system, what, why) from None


def _id_of(leader: Node | None) -> int | None:
    return None if leader is None or leader.id < 0 else leader.id


class _AbsentError(Exception):
    """The topic does not exist, or the user may not know that it does."""
