"""Kafka clients: how they are made, and what their failures mean."""

from __future__ import annotations

import functools
import logging
import queue
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.secret_names import shown_value
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka.connection import SaidOnce

_T = TypeVar("_T")

LIBRDKAFKA_LOG = logging.getLogger("homeport.librdkafka")
# Without this handler Python would print the library's lines about an absent broker to stderr,
# where a command promises one line. A program that sets up logging still gets them.
LIBRDKAFKA_LOG.addHandler(logging.NullHandler())
LIBRDKAFKA_LOG.addFilter(SaidOnce())

_NO_LOG = logging.getLogger("homeport.librdkafka.admin")
_NO_LOG.disabled = True
"""Of admin clients, whose lines would come at any ``poll``."""

_RECONNECTING: Mapping[str, str | int | float | bool] = {
    # The first connections of a new client wait for half of this; the default is 100 ms.
    "reconnect.backoff.ms": 10,
    # The library's ten seconds would delay the return to a broker that is back.
    "reconnect.backoff.max.ms": 1000,
}

COMMITTED: Mapping[str, str | int | bool] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    # the first offset may be deleted
    "auto.offset.reset": "earliest",
}
"""Properties of a consumer that reads committed records of partitions assigned by hand."""

FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001 - public names of the library, written this way by it
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    }
)
"""Codes of Kafka: a newer producer has taken over the transactional id."""

_FORGOTTEN = frozenset({KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.UNKNOWN_PRODUCER_ID})
"""Codes of Kafka: the transactional id is another producer's, or unknown."""

_NO_RIGHT = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Codes of Kafka: the user is known, and does not have the right."""

_UNRESOLVED = re.compile(r"Failed to resolve .+?(?= \(after |$)")
"""In the library's text of a host name that is not known."""

_DROPPED: queue.SimpleQueue[AdminClient] = queue.SimpleQueue()
"""Admin clients without a reference, for the thread that destroys them."""
_LIVE: weakref.WeakValueDictionary[int, _Admin] = weakref.WeakValueDictionary()
_POLLED_S = 60.0
"""Errors of an outage wait in each client until a ``poll``: about 100 MB in a day."""
_OURS = 2
"""References to a client that only one variable holds: that one, and the argument of the call."""
_STILL_HELD_S = 0.01


class _Admin:
    """An admin client that a thread of ours destroys, whichever thread drops it.

    An admin client ends its requests in a thread of its own, which runs Python. The traceback of a
    failed request keeps the client in a cycle of references. If the collector runs in that thread,
    it destroys the client there, and librdkafka ends the process for that.

    ``unresolved``: why host names cannot be resolved, as ``poll`` has reported it.
    """

    def __init__(self, client: AdminClient, unresolved: list[str]) -> None:
        self._client = client
        self.unresolved = unresolved
        # The finalizer holds the client, so that the collector never finds it in a cycle. Only a
        # SimpleQueue may be used here: the collector may run inside any call.
        weakref.finalize(self, _DROPPED.put, client).atexit = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - each method of the client
        return getattr(self._client, name)


def _poll_live() -> None:
    for reference in _LIVE.valuerefs():
        made = reference()
        if made is not None:
            made.poll(0)


def _destroy_dropped() -> None:
    while True:
        try:
            client = _DROPPED.get(timeout=_POLLED_S)
        except queue.Empty:
            _poll_live()
            continue
        if sys.getrefcount(client) > _OURS:
            # The thread that dropped it is still in the finalizer. The last reference must be ours.
            _DROPPED.put(client)
            time.sleep(_STILL_HELD_S)  # the end of a finalizer announces nothing
        del client


@functools.cache
def _start_destroying() -> None:
    """Start the thread that destroys admin clients, once in a process."""
    threading.Thread(target=_destroy_dropped, name="kafka-admin-destroy", daemon=True).start()


def is_end(error: KafkaError) -> bool:
    """Return whether ``error`` is the end of a partition: no further record for now."""
    return error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 - a public name of the library


def ends_reading(error: KafkaError) -> bool:
    """Return whether nothing more can be read; the library recovers from other errors."""
    gone = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED}
    return error.fatal() or error.code() in gone


def forgotten(error: KafkaError, transactional_id: str) -> str | None:
    """Return the error line for a producer that Kafka does not know any more; None if it does.

    Such a producer must not write, nor abort: the library would initialise the id once more, and so
    revive a fenced producer.
    """
    if error.code() not in _FORGOTTEN:
        return None
    return (
        f"Kafka does not know {transactional_id} any more: it had no transaction for longer than "
        f"the brokers' transactional.id.expiration.ms, or a newer holder took it ({error.name()})"
    )


def error_of(exception: KafkaException) -> KafkaError:
    """Return the KafkaError inside ``exception``."""
    error = exception.args[0]
    if isinstance(error, KafkaError):
        return error
    return KafkaError(KafkaError._FAIL, str(error))  # noqa: SLF001 - a public name of the library


def unavailable(
    system: SystemConfig, what: str, why: str | KafkaError, error: KafkaError | None = None
) -> UnavailableError:
    """Return the one-line error for a Kafka that did not do ``what``.

    ``error``: Kafka's answer, if ``why`` is a text around it.
    """
    if isinstance(why, KafkaError):
        error, why = why, why.str()
    servers = f"systems.{system.name}.consumer.bootstrap.servers"
    remedy = f"check that the brokers run and that {servers} names them"
    if error is not None and error.code() in _NO_RIGHT:
        remedy = "grant the rights that docs/security.md has for a job's user"
    where = f"Kafka at {system.bootstrap_servers} (system {system.name!r})"
    line = f"{where}: {what}: {why}; {remedy}"
    return UnavailableError(line, servers, system.bootstrap_servers)


def consumer(system: SystemConfig, over: Mapping[str, str | int | bool]) -> Consumer:
    """Return a consumer with the system's properties under ``over``; it has not connected yet."""
    properties = {**_RECONNECTING, "group.id": "homeport", **system.consumer, **over}
    return _made(system, "consumer", lambda: Consumer(properties, logger=LIBRDKAFKA_LOG))


def producer(system: SystemConfig, over: Mapping[str, Any]) -> Producer:
    """Return a producer with the system's properties under ``over``; it has not connected yet."""
    properties = {**_RECONNECTING, **system.producer, **over}
    return _made(system, "producer", lambda: Producer(properties, logger=LIBRDKAFKA_LOG))


def admin(system: SystemConfig) -> AdminClient:
    """Return an admin client with the system's properties; it has not connected yet."""
    unresolved: list[str] = []

    def hear(error: KafkaError) -> None:
        if error.code() == KafkaError._RESOLVE:  # noqa: SLF001 - a public name of the library
            unresolved[:] = _UNRESOLVED.findall(error.str())

    properties: dict[str, Any] = {**_RECONNECTING, **system.admin, "error_cb": hear}
    _start_destroying()
    client = _made(system, "consumer", lambda: AdminClient(properties, logger=_NO_LOG))
    made = _Admin(client, unresolved)
    _LIVE[id(made)] = made
    return cast("AdminClient", made)


def unresolved(client: AdminClient) -> str | None:
    """Return why a host name could not be resolved since the last call; None where all could be."""
    made: object = client
    if not isinstance(made, _Admin):
        return None
    client.poll(0)  # the library calls back within it
    return made.unresolved.pop() if made.unresolved else None


def _made(system: SystemConfig, role: str, make: Callable[[], _T]) -> _T:
    try:
        return make()
    except (KafkaException, ValueError, TypeError) as error:
        reason = error_of(error).str() if isinstance(error, KafkaException) else str(error)
        rule = f"librdkafka refuses these properties ({_without_secrets(system, reason)})"
        remedy = "correct or remove the property that it names"
        raise ConfigError(f"systems.{system.name}.{role}.*", None, rule, remedy) from None


def _without_secrets(system: SystemConfig, text: str) -> str:
    """Return ``text`` from librdkafka with every secret masked: it quotes refused values."""
    for name, value in (*system.consumer.items(), *system.producer.items()):
        if value:
            text = text.replace(value, shown_value(name, value))
    return text
