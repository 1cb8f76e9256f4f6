"""Clients of a system whose properties librdkafka refuses."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka import clients


def test_a_refusal_quotes_no_secret() -> None:
    """What librdkafka quotes of the properties is masked where it is a secret."""
    properties = {
        "bootstrap.servers": "localhost:1",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "hunter2",
        "fetch.min.bytes": "hunter2",
    }
    config = Config({f"systems.k.consumer.{name}": value for name, value in properties.items()})
    with pytest.raises(ConfigError, match=r"systems\.k\.consumer\.\*") as caught:
        clients.consumer(SystemConfig.of(config, "k"), {})
    assert "fetch.min.bytes" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        ("Topic authorization failed.", "grant the rights that docs/security.md has"),
        ("Broker: Group authorization failed", "grant the rights that docs/security.md has"),
        ("Local: Timed out", "check that the brokers run"),
    ],
)
def test_a_missing_right_is_no_broker_that_is_away(why: str, remedy: str) -> None:
    """Each line has the remedy of its cause."""
    system = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "h:1"}), "k")
    assert f"asking: {why}; {remedy}" in str(clients.unavailable(system, "asking", why))
