"""Kafka's users of a cluster with locks, and all that each may do: the rest is refused.

The rules of the job are those of docs/security.md: the demo proves that no more are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from docker_cluster.credentials import ADMIN, USERS
from docker_cluster.engine import DockerError

_LIMIT_S = 60.0
_ITERATIONS = 4096


class Rule(NamedTuple):
    """Names of ``AclOperation``. With ``is_prefix`` they are for all names that begin so."""

    resource: ResourceType
    name: str
    operations: tuple[str, ...]
    is_prefix: bool = False


_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_ID = ResourceType.TRANSACTIONAL_ID
_OWN = ("CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE")
_REFERENCES = ("planes", "airports", "airlines")
_INPUTS = ("flights", *_REFERENCES)

RULES: dict[str, tuple[Rule, ...]] = {
    "flights": (
        Rule(_TOPIC, "__samza_coordinator_flights_1", _OWN),
        Rule(_TOPIC, "__samza_checkpoint_ver_1_for_flights_1", _OWN),
        Rule(_TOPIC, "flights-summaries-changelog", _OWN),
        Rule(_TOPIC, "flights-skipped-changelog", _OWN),
        *(Rule(_TOPIC, name, ("DESCRIBE", "READ")) for name in _INPUTS),
        *(Rule(_TOPIC, name, ("DESCRIBE_CONFIGS",)) for name in _REFERENCES),
        Rule(_TOPIC, "plane-summary", ("DESCRIBE", "WRITE")),
        Rule(_GROUP, "homeport", ("DESCRIBE",)),
        Rule(_ID, "homeport.flights.1.", ("DESCRIBE", "WRITE"), is_prefix=True),
    ),
    "producer": (
        *(Rule(_TOPIC, name, ("CREATE", "DESCRIBE", "READ", "WRITE")) for name in _INPUTS),
        Rule(_TOPIC, "plane-summary", ("CREATE", "DESCRIBE")),
        Rule(_TOPIC, "plane-changes", ("CREATE", "DESCRIBE")),
        Rule(_GROUP, "flights-producer", ("DESCRIBE", "READ")),
    ),
    "reader": (
        Rule(_TOPIC, "flights", ("DESCRIBE", "READ")),
        Rule(_TOPIC, "plane-summary", ("DESCRIBE", "READ")),
        Rule(_TOPIC, "flights-summaries-changelog", ("DESCRIBE", "READ")),
        Rule(_TOPIC, "flights-skipped-changelog", ("DESCRIBE", "READ")),
        Rule(_TOPIC, "__samza_checkpoint_ver_1_for_flights_1", ("DESCRIBE", "READ")),
        Rule(_GROUP, "flights-demo", ("DESCRIBE", "READ")),
    ),
}


def grant(bootstrap_servers: str, secrets: Path) -> None:
    """Make the users, with their passwords and rules; repeated, it changes nothing.

    DockerError: Kafka refuses, or does not answer.
    """
    own = secrets / ADMIN
    admin = AdminClient(
        {
            "bootstrap.servers": bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(own / "ca.pem"),
            "ssl.key.location": str(own / "key.pem"),
            "ssl.certificate.location": str(own / "certificate.pem"),
        }
    )
    try:
        users: list[UserScramCredentialAlteration] = [_user(own, user) for user in USERS]
        for future in admin.alter_user_scram_credentials(users, request_timeout=_LIMIT_S).values():
            future.result(_LIMIT_S)
        bindings = list(_bindings(RULES.items()))
        for future in admin.create_acls(bindings, request_timeout=_LIMIT_S).values():
            future.result(_LIMIT_S)
    except KafkaException as error:
        raise DockerError(f"Kafka at {bootstrap_servers} takes no users: {error}") from None


def _user(own: Path, user: str) -> UserScramCredentialUpsertion:
    password = (own / f"{user}.password").read_bytes()
    form = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
    return UserScramCredentialUpsertion(user, form, password)


def _bindings(rules: Iterable[tuple[str, tuple[Rule, ...]]]) -> Iterator[AclBinding]:
    for user, allowed in rules:
        for rule in allowed:
            for operation in rule.operations:
                yield AclBinding(
                    rule.resource,
                    rule.name,
                    ResourcePatternType.PREFIXED if rule.is_prefix else ResourcePatternType.LITERAL,
                    f"User:{user}",
                    "*",
                    AclOperation[operation],
                    AclPermissionType.ALLOW,
                )
