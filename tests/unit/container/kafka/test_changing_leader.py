"""What a reader asks again while a partition changes its leader."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka import log_reader
from homeport.container.kafka.client_properties import PartitionError
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.restore import ChangelogRange

SYSTEM = SystemConfig.of(Config({"systems.kafka.consumer.bootstrap.servers": "b:1"}), "kafka")


class Admin:
    """An admin client: its brokers answer an error first, and then the offset 9."""

    def __init__(self, code: int) -> None:
        self.errors = [KafkaError(code)] * 2

    def list_offsets(
        self, asked: Mapping[TopicPartition, object], **_: object
    ) -> dict[TopicPartition, Future[SimpleNamespace]]:
        """An error, or the offset."""
        found: dict[TopicPartition, Future[SimpleNamespace]] = {}
        for place in asked:
            found[place] = Future()
            if self.errors:
                found[place].set_exception(KafkaException(self.errors.pop()))
            else:
                found[place].set_result(SimpleNamespace(offset=9))
        return found

    def list_topics(self, *_: object, **__: object) -> None:
        """No broker answers this one."""
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def _reader(code: int, monkeypatch: pytest.MonkeyPatch, *, waits: bool = True) -> LogReader:
    monkeypatch.setattr(log_reader, "admin", lambda _: Admin(code))
    monkeypatch.setattr(log_reader, "consumer", lambda *_: None)
    return LogReader(SYSTEM, lambda _: None, waits_out_outages=waits)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError._TIMED_OUT,
    ],
)
def test_offsets_are_requested_again_while_a_leader_changes(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new leader does not know its high watermark at once (KIP-207)."""
    ends = _reader(code, monkeypatch).ends([("clog", 0)])
    assert ends == {("clog", 0): ChangelogRange(9, 9)}


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._TIMED_OUT])
def test_a_caller_that_repeats_anyway_learns_of_an_outage_at_once(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a standby, which looks at the heads every second and says what it waits for."""
    with pytest.raises(UnavailableError):
        _reader(code, monkeypatch, waits=False).ends([("clog", 0)])


def test_a_caller_that_repeats_anyway_requests_again_while_a_leader_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the client goes on asking the leader that it knows, for as long as it likes."""
    reader = _reader(KafkaError.LEADER_NOT_AVAILABLE, monkeypatch, waits=False)
    assert reader.ends([("clog", 0)]) == {("clog", 0): ChangelogRange(9, 9)}


def test_a_partition_that_is_not_there_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting would not mend it."""
    with pytest.raises(PartitionError):
        _reader(KafkaError.UNKNOWN_TOPIC_OR_PART, monkeypatch).ends([("clog", 0)])
