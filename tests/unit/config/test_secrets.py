"""Secrets of the configuration."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.secret_names import MASK, is_secret, warnings_of_overrides
from homeport.config.secrets import masked
from homeport.config.sections import SystemConfig, TaskConfig


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


def test_an_error_never_has_a_secrets_value() -> None:
    """Neither its line nor its fields, whoever raises it."""
    error = ConfigError("systems.k.consumer.sasl.password", "hunter2", "it is bad", "mend it")
    assert str(error) == "systems.k.consumer.sasl.password = '********': it is bad; mend it"
    assert error.value == MASK
    config = Config({"sensitive.port": "hunter2"})
    with pytest.raises(ConfigError) as caught:
        config.get_int("sensitive.port", 1)
    assert "hunter2" not in str(caught.value)


def test_a_views_text_has_no_secrets() -> None:
    """What a view of the configuration prints of itself, in a log or a traceback, has none."""
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "k",
            "systems.k.consumer.bootstrap.servers": "h:1",
            "systems.k.consumer.sasl.password": "hunter2",
            "systems.k.producer.sasl.jaas.config": 'X required password="hunter2";',
            "task.spark.conf.spark.hadoop.fs.s3a.secret.key": "hunter2",
        }
    )
    for view in (config, SystemConfig.of(config, "k"), TaskConfig.of(config)):
        assert "hunter2" not in repr(view)


def test_secrets_on_the_command_line_are_warned_of() -> None:
    """Everybody on a machine can read the arguments of its programs: one line per key, no value."""
    (warning,) = warnings_of_overrides(["a=1", "db.password=hunter2", "db.password=x", "b"])
    assert warning.startswith("db.password is on the command line")
    assert "hunter2" not in warning
