"""Clients of a system whose properties librdkafka refuses."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata
from waiting import until

from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.connection import Connection, SaidOnce
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.kafka.transient_errors import is_transient


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


_GRANT = "grant the rights that docs/security.md has"
_BROKERS = "check that the brokers run"


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, _GRANT),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, _GRANT),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, _GRANT),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _GRANT),
        (KafkaError.SASL_AUTHENTICATION_FAILED, _BROKERS),
        (KafkaError._TIMED_OUT, _BROKERS),
    ],
)
@pytest.mark.parametrize("words", ["refused", "Topic authorization failed."])
def test_a_missing_right_is_no_broker_that_is_away(code: int, words: str, remedy: str) -> None:
    """Each line has the remedy of its cause, by Kafka's code; a broker words it as it likes."""
    system = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "h:1"}), "k")
    error = KafkaError(code, words)
    assert f"asking: {words}; {remedy}" in str(clients.unavailable(system, "asking", error))
    around = clients.unavailable(system, "asking", f"key 1: {words}", error)
    assert f"asking: key 1: {words}; {remedy}" in str(around)
    assert f"asking: {words}; {_BROKERS}" in str(clients.unavailable(system, "asking", words))


_AWAY = "listing topics: Failed to get metadata: Local: Broker transport failure"


@pytest.mark.parametrize("servers", ["no..host:1", "no..host:1,127.0.0.1:1"])
def test_a_host_name_that_is_not_known_is_named(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In the one line: the library's own error for the request has only that no broker answers.

    That error stays: another broker may be away for another cause.
    """
    system = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": servers}), "k")
    line = rf"{_AWAY} \(Failed to resolve 'no\.\.host:1': [^(;)]*\); check that"
    with pytest.raises(UnavailableError, match=line) as caught:
        TopicAdmin(system, timeout_s=0.5).partition_counts(["in"])
    assert caught.value.key == "systems.k.consumer.bootstrap.servers"
    assert caught.value.value == servers
    assert caplog.records == []


class Library:
    """An admin client without a broker; ``poll`` reports ``errors``, a request adds ``causes``."""

    def __init__(self, properties: Mapping[str, Any], **_: object) -> None:
        self._report = properties["error_cb"]
        self.errors: list[KafkaError] = []
        self.causes: Sequence[KafkaError] = ()

    def poll(self, _timeout: float) -> None:
        """The reports since the last call."""
        while self.errors:
            self._report(self.errors.pop(0))

    def list_topics(self, timeout: float) -> ClusterMetadata:
        """The error of the request, which has no cause."""
        del timeout
        self.errors += self.causes
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "Failed to get metadata"))


def test_only_the_names_that_a_request_could_not_resolve_are_its_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither that of an earlier one, nor one from between them, nor another kind of fault."""
    made: list[Library] = []

    def make(properties: Mapping[str, Any], **_: object) -> Library:
        made.append(Library(properties))
        return made[-1]

    monkeypatch.setattr(clients, "AdminClient", make)
    system = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "h:1"}), "k")
    topics = TopicAdmin(system, timeout_s=0.5)
    (library,) = made
    unknown = KafkaError(KafkaError._RESOLVE, "h:1/b: Failed to resolve 'h:1': gone (after 1ms)")
    tls = KafkaError(KafkaError._SSL, "h:1/b: SSL handshake failed")
    listing = "listing topics: Failed to get metadata"
    for causes, line in (
        ((unknown, tls), rf"{listing} \(Failed to resolve 'h:1': gone\); check"),
        ((tls,), rf"{listing}; check"),
    ):
        library.causes = causes
        with pytest.raises(UnavailableError, match=line):
            topics.names()
        library.errors.append(unknown)


_COLLECTED_IN_ITS_OWN_THREAD = """
import gc, sys, threading, time
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka import clients

def ask(make):
    kept = [make()]
    kept.append(kept)  # a cycle, as the traceback of a failed request is one
    resource = ConfigResource(ResourceType.TOPIC, "t")
    request = kept[0].describe_configs([resource], request_timeout=0.2)[resource]
    request.add_done_callback(lambda _: (gc.collect(), collected.set()))

gc.disable()
collected = threading.Event()
system = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "127.0.0.1:9"}), "k")
product = lambda: clients.admin(system)
plain = lambda: AdminClient({"bootstrap.servers": "127.0.0.1:9", "log_level": 0})
ask(product if sys.argv[1] == "product" else plain)
print("collected", collected.wait(30), flush=True)
while any(isinstance(each, AdminClient) for each in gc.get_objects()):
    time.sleep(0.01)  # another thread destroys it; the test ends this process after a minute
print("destroyed", flush=True)
"""


@pytest.mark.parametrize(("maker", "end"), [("plain", -signal.SIGABRT), ("product", 0)])
def test_a_client_that_is_collected_in_its_own_thread_does_not_end_the_process(
    maker: str, end: int
) -> None:
    """The library aborts a process whose admin client is destroyed by the client's own thread."""
    ended = subprocess.run(
        [sys.executable, "-c", _COLLECTED_IN_ITS_OWN_THREAD, maker],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert ended.returncode == end, ended.stderr
    assert ("destroyed" in ended.stdout) is (end == 0), ended.stdout


def test_a_client_that_its_dropper_still_holds_is_destroyed_by_our_thread() -> None:
    """The thread that runs the finalizer holds the client until that has returned."""
    destroyed_by: list[str] = []

    class Dropped:
        def __del__(self) -> None:
            destroyed_by.append(threading.current_thread().name)

    clients._start_destroying()
    held: Any = Dropped()
    clients._Admin(held, [])
    # When this one is destroyed, the first had its turn.
    clients._Admin(cast("AdminClient", Dropped()), [])
    until(lambda: len(destroyed_by) == 1)
    del held
    until(lambda: len(destroyed_by) == 2)
    assert set(destroyed_by) == {"kafka-admin-destroy"}


class Client:
    """A producer whose library has something to say, and whose broker answers or not."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.words: list[int] = []
        self.is_up = True
        self.asked = 0

    def poll(self, _timeout: float) -> int:
        """The words are said."""
        given, self.words = self.words, []
        for code in given:
            self._connection.heard(KafkaError(code))
        return len(given)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """An answer, or the library's error."""
        del topic, timeout
        self.asked += 1
        if not self.is_up:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return ClusterMetadata()


def test_without_a_loss_there_is_no_request() -> None:
    """Neither by silence, nor by words about other things."""
    connection = Connection()
    client = Client(connection)
    client.words = [KafkaError._MAX_POLL_EXCEEDED]
    connection.wait(client, lambda _s: pytest.fail("it waits"))
    assert client.asked == 0


def test_a_loss_lasts_until_a_broker_answers() -> None:
    """However often it is checked."""
    connection = Connection()
    client = Client(connection)
    client.words, client.is_up = [KafkaError._ALL_BROKERS_DOWN], False

    def pause(_s: float) -> None:
        assert connection.lost(client) is not None
        client.is_up = True

    connection.wait(client, pause)
    assert connection.lost(client) is None
    assert client.asked == 2


def test_errors_that_differ_in_numbers_only_are_logged_once() -> None:
    """A library that tries every second says so once a minute."""
    once = SaidOnce()

    def stated(text: str) -> bool:
        return once.filter(logging.LogRecord("n", logging.ERROR, "f", 1, text, None, None))

    assert stated("connect to broker 1 failed after 3 ms")
    assert not stated("connect to broker 2 failed after 12 ms")
    assert stated("authentication failed")


@pytest.mark.parametrize(
    ("code", "is_retried"),
    [
        (KafkaError._TRANSPORT, True),
        (KafkaError._MSG_TIMED_OUT, True),
        (KafkaError.OFFSET_NOT_AVAILABLE, True),
        (KafkaError.KAFKA_STORAGE_ERROR, True),
        (KafkaError.REPLICA_NOT_AVAILABLE, True),
        (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
        (KafkaError.NOT_CONTROLLER, True),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, False),
        (KafkaError.INVALID_MSG, False),
        (KafkaError.OFFSET_OUT_OF_RANGE, False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False),
        (KafkaError.MSG_SIZE_TOO_LARGE, False),
        (KafkaError.PRODUCER_FENCED, False),
        (KafkaError._FENCED, False),
    ],
)
def test_errors_that_kafka_retries_are_transient(code: int, *, is_retried: bool) -> None:
    """So is what the library says to retry; what only a change mends is not waited for."""
    assert is_transient(KafkaError(code)) is is_retried
    assert is_transient(KafkaError(KafkaError._FAIL, "once more", retriable=True))


class _CountsPolls(AdminClient):
    polls = 0

    def poll(self, timeout: float = -1) -> int:
        _CountsPolls.polls += 1
        return super().poll(timeout)


def test_an_admin_client_that_no_caller_polls_keeps_no_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that destroys clients polls those in use; the library queues errors until then."""
    monkeypatch.setattr(clients, "AdminClient", _CountsPolls)
    monkeypatch.setattr(clients, "_POLLED_S", 0.02)
    config = Config({"systems.k.consumer.bootstrap.servers": "127.0.0.1:1"})
    system = SystemConfig.of(config, "k")
    held = clients.admin(system)
    clients.admin(system)  # dropped at once: the thread, which may wait for long, takes it
    until(lambda: _CountsPolls.polls > 2)
    assert held is not None
