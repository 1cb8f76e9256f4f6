"""``homeport local send`` and ``read``: records for a job to read, and what it has written."""

import itertools
import re
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec import DecodeError, Struct, json

from homeport.cli.local.common import DEFAULT_NAME, Name, running, show
from homeport.cli.options import AsJson, Progress, described, new_app, warn
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka.topics import CONTACT_S, TopicAdmin
from homeport.job_coordinator.model.wire_form import about, json_text
from homeport.local_cluster.errors import ClusterError

_LIMIT_S = 30.0
_POLL_S = 0.5
_PROGRESS_S = 5.0
_ANSWER_S = 3.0
"""How long Kafka gets to answer at the end of a wait; of a shorter wait, as long as that."""
_WAIT_S = 60.0
"""How long ``read`` waits for a further record where no option sets it."""
_SHOWN = 40
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")

Topic = Annotated[str, typer.Argument(metavar="TOPIC")]


app = new_app()


@app.command(short_help="send records to a topic, which is made")
@described(
    records=typer.Argument(
        metavar="[KEY=VALUE...]", help="As in 'ann={\"amount\": 5}'; default: lines of stdin."
    ),
    partitions=typer.Option("--partitions", min=1, help="Of the topic, if it is not there yet."),
)
def send(
    topic: Topic,
    records: list[str] | None = None,
    *,
    name: Name = DEFAULT_NAME,
    partitions: int = 1,
) -> None:
    """Sends records to a topic of the cluster's Kafka, and makes the topic if it is not there.

    What is before the first = is the key; a record without = has no key. KEY= is a record without
    a value, which deletes the key. A record without a key, or with a value that is no JSON, is sent
    with a warning.
    """
    if not _TOPIC.fullmatch(topic):
        rule = "a topic's name has at most 249 letters, digits and characters of ._-"
        raise ConfigError("TOPIC", topic, rule, "give another name")
    servers = _reached(name)
    remarks = SendRemarks()
    pairs = (remarks.noted(text.rstrip("\n")) for text in (records or sys.stdin) if text.strip())
    _make(servers, topic, partitions)
    sent = _sent(servers, topic, pairs)
    warn(remarks.lines())
    show(f"{topic}: {sent} records sent")


@app.command(short_help="print the records of a topic")
@described(
    follow=typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C."),
    count=typer.Option("--count", min=1, help="Wait for so many records, print them, and end."),
    timeout=typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.0,
        help="End with exit code 1 after so long without a further record; default: "
        f"{_WAIT_S:g}, with --follow never.",
    ),
)
def read(
    topic: Topic,
    *,
    name: Name = DEFAULT_NAME,
    follow: bool = False,
    count: int | None = None,
    timeout: float | None = None,
    as_json: AsJson = False,
) -> None:
    """Prints the committed records of a topic from its beginning: key, tab, value.

    Without --follow and --count it ends where the topic ends now. With --count the topic need not
    be there yet; while it waits, a line on standard error has the number reached.

    --json: one object per line, with partition, offset, key and value.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": _reached(name),
            "group.id": f"homeport-local-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        waits = follow or count is not None
        limit_s = _WAIT_S if timeout is None and not follow else timeout
        messages = _messages(consumer, topic, Wait(topic, count, limit_s), waits=waits)
        for message in itertools.islice(messages, count):
            place = message.partition() or 0, message.offset() or 0
            text = record_line(place, message.key(), message.value(), as_json=as_json)
            print(text, flush=waits)
    except KafkaException as error:
        raise _unavailable(error) from error
    finally:
        consumer.close()


def pair(text: str) -> tuple[bytes | None, bytes | None]:
    """Return key and value of ``KEY=VALUE``; None: there is none."""
    key, equals, value = text.partition("=")
    if not equals:
        return None, text.encode()
    return key.encode() or None, value.encode() or None


@dataclass(slots=True)
class SendRemarks:
    """Counts the records that a job of a template would refuse, and holds the first of a kind."""

    sent: int = 0
    found: dict[str, tuple[str, int]] = field(default_factory=dict)
    """{kind: its first record, how many there are}."""

    def noted(self, text: str) -> tuple[bytes | None, bytes | None]:
        """Return the record of ``text``, as ``pair`` does, and note what is odd about it."""
        key, value = pair(text)
        self.sent += 1
        if key is None:
            self._note("without a key, which KEY=VALUE gives", text)
        if value is not None and not _is_json(value):
            self._note("with a value that is no JSON, which most jobs read", text)
        return key, value

    def lines(self) -> Iterator[str]:
        """Yield a line for each kind: how many there are, and the first."""
        for kind, (first, number) in self.found.items():
            yield f"{number} of {self.sent} records sent {kind}; the first: {first!r}"

    def _note(self, kind: str, text: str) -> None:
        first, number = self.found.get(kind, (text[:_SHOWN], 0))
        self.found[kind] = first, number + 1


class Wait:
    """Reports how many records have come, and ends a wait for the next one.

    ``count``: how many are wanted; None: all, and no progress is printed. ``limit_s``: how long the
    next one may take; None: without end.
    """

    def __init__(self, topic: str, count: int | None, limit_s: float | None) -> None:
        self._topic, self._count, self._limit_s = topic, count, limit_s
        self._reached, self._since_s = 0, time.monotonic()
        self._progress = Progress(_PROGRESS_S, after_s=_PROGRESS_S)

    def came(self) -> None:
        """Count a record; the time for the next one begins."""
        self._reached += 1
        self._since_s = time.monotonic()

    def answer_s(self) -> float:
        """Return how long Kafka may take to answer: what is left of the wait, or little more."""
        if self._limit_s is None:
            return _LIMIT_S
        least_s = min(_ANSWER_S, max(1.0, self._limit_s))
        return max(least_s, min(_LIMIT_S, self._since_s + self._limit_s - time.monotonic()))

    def goes_on(self) -> None:
        """Report the number reached, if it is time; ClusterError: the wait was too long."""
        of = "" if self._count is None else f" of {self._count}"
        reached = f"{self._reached}{of} records"
        if self._limit_s is not None and time.monotonic() - self._since_s >= self._limit_s:
            raise ClusterError(
                f"{self._topic}: {reached}, and none further within {self._limit_s:g} s "
                "(--timeout); homeport status --config-path=FILE shows whether the job runs"
            )
        if self._count is not None:
            self._progress.show(f"{reached}; Ctrl-C ends")


class ReadRecord(Struct, frozen=True):
    """One record of a topic, for a script."""

    partition: Annotated[int, about("of the record")]
    offset: Annotated[int, about("of the record")]
    key: Annotated[str | None, about("as text, other bytes as 0x and hexadecimal digits")]
    value: Annotated[str | None, about("likewise; null deletes the key")]


def record_line(place: tuple[int, int], key: object, value: object, *, as_json: bool) -> str:
    """Return a record for a reader, or as JSON; ``place``: partition and offset."""
    texts = (_text(key), _text(value))
    if as_json:
        return json_text(ReadRecord(*place, *texts))
    return "\t".join("" if text is None else text for text in texts)


def _is_json(value: bytes) -> bool:
    try:
        json.decode(value)
    except (DecodeError, RecursionError):  # the latter: nested too deeply for a reader
        return False
    return True


def _text(data: object) -> str | None:
    if not isinstance(data, bytes):
        return None if data is None else str(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"


def _reached(name: str) -> str:
    servers = running(name).bootstrap_servers
    system = SystemConfig.of(Config({"systems.kafka.consumer.bootstrap.servers": servers}), "kafka")
    try:
        TopicAdmin(system, CONTACT_S).require_reachable()
    except UnavailableError:
        raise UnavailableError(f"no broker at {servers} answers: homeport local status") from None
    return servers


def _make(servers: str, topic: str, partitions: int) -> None:
    # What it notes at its end, such as events that were not taken, is nothing for a user.
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 3})
    try:
        if topic in admin.list_topics(timeout=_LIMIT_S).topics:
            return
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(_LIMIT_S)
    except KafkaException as error:
        if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
            return
        raise _unavailable(error) from error


def _sent(servers: str, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> int:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "acks": "all"})
    failed: list[object] = []
    count = 0
    for key, value in records:
        while True:
            try:
                producer.produce(
                    topic, value, key, on_delivery=lambda e, _: failed.append(e) if e else None
                )
                break
            except BufferError:
                producer.poll(_POLL_S)
        count += 1
    if producer.flush(_LIMIT_S) or failed:
        why = str(failed[0]) if failed else f"no answer in {_LIMIT_S:.0f} s"
        raise UnavailableError(f"Kafka did not take all records: {why}; homeport local status")
    return count


def _messages(consumer: Consumer, topic: str, wait: Wait, *, waits: bool) -> Iterator[Message]:
    """Yield the records of all partitions, to the end of each, or as long as ``wait`` allows."""
    found = consumer.list_topics(timeout=wait.answer_s()).topics
    while waits and topic not in found:
        wait.goes_on()
        time.sleep(_POLL_S)  # Kafka has no call that waits for a topic
        found = consumer.list_topics(timeout=wait.answer_s()).topics
    if topic not in found:
        raise ClusterError(f"Kafka has no topic {topic!r}: it has {_listed(list(found))}")
    partitions = found[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    open_ones = set(partitions)
    while open_ones or waits:
        message = consumer.poll(_POLL_S)
        if message is None:
            _go_on(consumer, wait)
            continue
        error = message.error()
        if error is None:
            wait.came()
            yield message
        elif error.name() == "_PARTITION_EOF":
            open_ones.discard(message.partition())
        else:
            raise KafkaException(error)


def _go_on(consumer: Consumer, wait: Wait) -> None:
    """Go on with the wait; at its end KafkaException where Kafka, not the job, is away."""
    try:
        wait.goes_on()
    except ClusterError:
        consumer.list_topics(timeout=wait.answer_s())
        raise


def _listed(topics: Sequence[str]) -> str:
    """Name the user's topics; Kafka's own and those of jobs begin with two underscores."""
    return ", ".join(sorted(t for t in topics if not t.startswith("__"))) or "none"


def _unavailable(error: KafkaException) -> UnavailableError:
    return UnavailableError(f"Kafka does not answer ({error.args[0].str()}): homeport local status")
