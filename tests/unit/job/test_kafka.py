"""Kafka and env: the keys by which a job in Python reaches its brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeport import Avro, Job, Kafka, env
from homeport.config.errors import ConfigError
from homeport.config.kafka_names import Role, map_client_properties
from homeport.testing import TestRunner

_TEXT: Any = "as a user may write it"
_AT = "systems.kafka.consumer."


def _properties(kafka: Kafka) -> dict[str, str]:
    config = Job("reached", kafka=kafka).config
    return {k.removeprefix(_AT): v for k, v in config.items() if k.startswith(_AT)}


@pytest.mark.parametrize("password", ["plain", 'a"b\\c', "it's; fine=1"])
def test_librdkafka_gets_user_and_password(
    password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in them; the certificate goes with the configuration."""
    monkeypatch.setenv("SECRET_OF_KAFKA", password)
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    kafka = Kafka(
        servers="broker:9093",
        sasl="SCRAM-SHA-512",
        user="flights",
        password=env("SECRET_OF_KAFKA"),
        ca=tmp_path / "ca.pem",
    )
    found = map_client_properties(_properties(kafka), Role.CONSUMER)
    assert found.ignored.keys() == {"ssl.truststore.type"}  # Java's clients need it
    assert found.properties == {
        "bootstrap.servers": "broker:9093",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.password": password,
        "sasl.username": "flights",
        "security.protocol": "SASL_SSL",
        "ssl.ca.pem": "-----BEGIN CERTIFICATE-----\n",
    }


@pytest.mark.parametrize(
    ("kafka", "protocol"),
    [
        (Kafka(servers="b:1"), None),
        (Kafka(servers="b:1", tls=True), "SSL"),
        (Kafka(sasl="PLAIN", user="u", password=env("HOME")), "SASL_PLAINTEXT"),
    ],
)
def test_the_protocol_follows_from_user_and_tls(kafka: Kafka, protocol: str | None) -> None:
    """Without either, Kafka's default holds."""
    assert _properties(kafka).get("security.protocol") == protocol


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: Kafka(sasl="GSSAPI"), "Kafka.sasl = 'GSSAPI': there is no such mechanism here"),
        (lambda: Kafka(sasl="PLAIN", user="u", password=_TEXT), "a job's file has no password"),
        (lambda: Kafka(servers="a:1, b"), "Kafka.servers = 'a:1, b': 'b' is not HOST:PORT; write"),
        (lambda: Kafka(servers=":1"), "':1' is not HOST:PORT"),
        (
            lambda: Job("j", kafka="localhost"),
            "Kafka.servers = 'localhost': 'localhost' is not HOST",
        ),
        (
            lambda: Kafka(servers=" , "),
            "Kafka.servers = ' , ': ' , ' is not HOST:PORT; write it so",
        ),
        (
            lambda: Kafka(servers=["a:1", "b:1"]),  # type: ignore[arg-type]  # the mistake
            (
                "Kafka.servers = \"['a:1', 'b:1']\": it is text, or env(...), not list; write it "
                'as in "broker:9092,other:9092"'
            ),
        ),
        (
            lambda: Job("j", kafka=b"a:1"),  # type: ignore[arg-type]  # the mistake
            "it is text, or env(...), not bytes",
        ),
        (lambda: Kafka(user="u"), "Kafka.sasl is missing: sasl, user and password go together"),
        (lambda: Kafka(sasl="PLAIN", user="u"), "Kafka.password is missing"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(make: Callable[[], object], line: str) -> None:
    """The line has no secret."""
    with pytest.raises(ConfigError) as caught:
        make()
    assert line in str(caught.value)


@pytest.mark.parametrize("name", ["ca.pem", "folder", "binary"])
def test_a_certificate_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    """Where a command reads it, not where the file is imported."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    job = Job("certified", kafka=Kafka(ca=tmp_path / name))
    with pytest.raises(ConfigError, match="it cannot be read"):
        _ = job.config


def test_a_secret_that_is_not_set_is_named_and_no_test_needs_it() -> None:
    """Commands read it; TestRunner and containers do not."""
    secret = env("NOT_SET_ANYWHERE")
    kafka = Kafka(sasl="PLAIN", user="u", password=secret)
    job = Job("quiet", kafka=kafka, keys={"my.password": secret})
    source = job.input("in", key=str, value=int)
    seen: list[int] = []

    @job.each(source)
    def process(_key: str, value: int) -> None:
        seen.append(value)

    with pytest.raises(ConfigError, match="environment variable NOT_SET_ANYWHERE is not set"):
        _ = job.config
    with TestRunner(job) as runner:
        runner.send("in", key="k", value=1)
        runner.run()
    assert seen == [1]


def test_other_keys_take_secrets_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ``keys``, as they stand in the environment of the command."""
    job = Job("own", keys={"my.password": env("SECRET_OF_MINE")})
    for text in ("one", "two"):
        monkeypatch.setenv("SECRET_OF_MINE", text)
        assert job.config["my.password"] == text


def test_a_value_that_keys_replace_is_not_looked_up(tmp_path: Path) -> None:
    """Neither a secret that is not set, nor a file that is not there."""
    kafka = Kafka(sasl="PLAIN", user="u", password=env("NOT_SET_ANYWHERE"), ca=tmp_path / "no.pem")
    given = {
        f"{_AT}sasl.jaas.config": "own",
        f"{_AT}ssl.truststore.certificates": "PEM",
        "serializers.registry.absent.schema": '"string"',
    }
    job = Job("replaced", kafka=kafka, keys=given)
    job.input("in", value=Avro("absent.avsc"))
    assert given.items() <= job.config.items()


@pytest.mark.parametrize("servers", ["a:9092,", "a:9092, ,b:1", ",a:1"])
def test_empty_parts_of_servers_are_skipped(servers: str) -> None:
    """As librdkafka skips them."""
    assert _properties(Kafka(servers=servers)) == {"bootstrap.servers": servers}


def test_servers_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their text is checked where a command reads it."""
    key = f"{_AT}bootstrap.servers"
    jobs = Job("one", kafka=env("MY_BROKERS")), Job("two", kafka=Kafka(servers=env("MY_BROKERS")))
    for job in jobs:
        monkeypatch.setenv("MY_BROKERS", "a:1,b:2")
        assert job.config[key] == "a:1,b:2"
        monkeypatch.setenv("MY_BROKERS", "a")
        with pytest.raises(ConfigError, match=f"{key} = 'a': 'a' is not HOST:PORT"):
            _ = job.config
        assert key not in job.config_of(None)
