"""Secrets of the configuration."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.secrets import MASK, is_secret, masked


@pytest.mark.parametrize(
    "key",
    [
        "sensitive.anything",
        "SENSITIVE.ANYTHING",
        "systems.kafka.consumer.sasl.jaas.config",
        "systems.kafka.producer.sasl.password",
        "systems.kafka.consumer.ssl.key.pem",
        "systems.kafka.consumer.ssl.keystore.key",
        "systems.kafka.consumer.sasl.oauthbearer.client.secret",
        "systems.kafka.consumer.sasl.oauthbearer.config",
        "task.api.Token",
        "task.api_private-key",
        "task.cloud.credentials",
    ],
)
def test_a_key_that_names_a_secret_is_one(key: str) -> None:
    """Passwords, secrets, tokens, private keys and JAAS texts are secret in whatever case."""
    assert is_secret(key)


@pytest.mark.parametrize(
    "key", ["job.name", "task.inputs", "insensitive.x", "serializers.registry.json.class", ""]
)
def test_other_keys_are_shown(key: str) -> None:
    """What names no secret is shown; the prefix ``sensitive.`` counts at the beginning only."""
    assert not is_secret(key)


def test_masking_keeps_keys_and_hides_values() -> None:
    """Every key stays; the value of a secret one, even an empty one, is eight asterisks."""
    config = Config({"job.name": "j", "sensitive.a": "x", "db.password": ""})
    assert masked(config) == Config({"job.name": "j", "sensitive.a": MASK, "db.password": MASK})
    assert MASK == "********"
