"""The coordinator stream as its readers see it: the latest record of every key.

``CoordinatorStream`` is what managers need of a stream. ``StreamState`` folds records, in their
order, into the present state. ``EmptyCoordinatorStream`` is the stream of a job without records.
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from homeport.config.errors import InvariantViolation, WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)

_LOG = logging.getLogger(__name__)
_LOCALITY = frozenset({MessageType.SET_CONTAINER_HOST, MessageType.SET_TASK_HOST})
_OF_PEOPLE = frozenset({MessageType.SET_CONFIG, MessageType.SET_UPGRADE})
"""What operators write: keys of the configuration, orders of upgrades."""
_PACKAGE = b'[1,"set-package",'
"""How the keys of packages begin."""
_TOLD_DAMAGES = 100
"""A topic may be full of records of another program: not every one is worth a line."""


class KeyRecord(NamedTuple):
    """One record that operators may write, with what its key had before; None: nothing."""

    offset: int
    before: CoordinatorStreamMessage | None
    after: CoordinatorStreamMessage

    @property
    def key(self) -> str:
        """Return the key of the record, as the name of the configuration key."""
        return self.after.key


class CoordinatorStream(Protocol):
    """What managers need: the present state, new records, and a way to write."""

    @property
    def damaged_count(self) -> int:
        """How many records were skipped because their bytes are damaged."""

    def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
        """Read to the head; return the records that are new since the last call, in their order."""

    def latest(self, message_type: str) -> Mapping[str, CoordinatorStreamMessage]:
        """Return {key: last record} of one type as of the last catch-up, deleted keys left out."""

    def taken_keys(self) -> tuple[KeyRecord, ...]:
        """Return the records of keys and upgrades since the last call, in their order.

        A stream that does not keep them has none.
        """

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Write all messages, in their order; they are in the stream when this returns.

        Where it raises, see the class.
        """


class StreamState:
    """The latest record of every key. Records of unknown types are kept too.

    A locality counts where its incarnation had the last permit when the record was written. Else
    the former locality stays: a slow incarnation must not take its processor back. A locality that
    was written in time stays valid after the next permit, until that incarnation writes its own.
    A failover ends it too: the active container goes to another host, and the standby leaves the
    place that the active one takes.

    ``has_packages``: whether it keeps the records of packages, which are megabytes. ``keeps_keys``:
    whether it keeps each record of keys and upgrades until ``taken_keys`` returns it.
    """

    def __init__(self, *, has_packages: bool = True, keeps_keys: bool = False) -> None:
        self._has_packages = has_packages
        self._keeps_keys = keeps_keys
        self._keys: deque[KeyRecord] = deque()
        self._latest: dict[str, dict[str, CoordinatorStreamMessage]] = {}
        self._text_versions: set[tuple[str, str]] = set()
        self._moved: dict[str, tuple[int, str | None]] = {}
        """{processor: (last epoch whose localities no longer count, the host it has instead)}"""
        self._damaged = 0

    @property
    def damaged_count(self) -> int:
        """How many records were skipped because their bytes are damaged."""
        return self._damaged

    def take(
        self, offset: int | None, key: bytes | None, value: bytes | None
    ) -> CoordinatorStreamMessage | None:
        """Take the stream's next record; return it, or None where it is damaged or left out.

        A damaged record is counted and changes nothing: the former value of its key stays.
        """
        if not self._has_packages and key is not None and key.startswith(_PACKAGE):
            return None
        try:
            message = wire.decode(key, value)
        except WireError as damage:
            self._damaged += 1
            if self._damaged <= _TOLD_DAMAGES:
                last = "; more will only be counted" if self._damaged == _TOLD_DAMAGES else ""
                _LOG.warning(
                    "coordinator stream: damaged record at offset %s skipped: %s%s",
                    offset,
                    damage,
                    last,
                )
            return None
        if self._keeps_keys and message.type in _OF_PEOPLE:
            before = self._latest.get(message.type, {}).get(message.key)
            self._keys.append(KeyRecord(-1 if offset is None else offset, before, message))
        self.apply(message)
        return message

    def taken_keys(self) -> tuple[KeyRecord, ...]:
        """Return the records of keys and upgrades since the last call, in their order."""
        taken = tuple(self._keys)
        self._keys.clear()
        return taken

    def apply(self, message: CoordinatorStreamMessage) -> None:
        """Apply ``message``, the next record of the stream."""
        message_type, key = message.type, message.key
        if message.has_text_version:
            self._note_text_version(message)
        if message_type in _LOCALITY and self._is_late_locality(message):
            _LOG.info("ignored: %s %r of a succeeded incarnation", message_type, key)
            return
        if message_type == MessageType.SET_FAILOVER:
            self._note_failover(message)
        records = self._latest.get(message_type)
        if records is None:
            records = self._latest[message_type] = {}
        # taken out first, so that the order of a dict is the order of last writes
        records.pop(key, None)
        if message.values is not None:
            records[key] = message

    @property
    def record_count(self) -> int:
        """Number of keys that have a record."""
        return sum(map(len, self._latest.values()))

    def latest(self, message_type: str) -> dict[str, CoordinatorStreamMessage]:
        """Return {key: last record} of one type, without deleted keys, in the order of writing."""
        return dict(self._latest.get(message_type, {}))

    def with_text_versions_deleted(
        self, messages: Iterable[CoordinatorStreamMessage]
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Return ``messages``, each after a tombstone of its twin in the document's form, if any.

        The key of the twin has its version as text: for Kafka the two keys are different. Without
        the tombstone the twin would come back once ours has been deleted and compacted away.
        """
        found: list[CoordinatorStreamMessage] = []
        for message in messages:
            if (message.type, message.key) in self._text_versions and not message.has_text_version:
                found.append(
                    CoordinatorStreamMessage(message.type, message.key, None, has_text_version=True)
                )
            found.append(message)
        return tuple(found)

    def _note_text_version(self, message: CoordinatorStreamMessage) -> None:
        name = (message.type, message.key)
        if message.is_tombstone:
            self._text_versions.discard(name)
        else:
            self._text_versions.add(name)

    def _is_late_locality(self, message: CoordinatorStreamMessage) -> bool:
        if message.type == MessageType.SET_CONTAINER_HOST:
            processor_id: str | None = message.key
        else:
            assignment = self._latest.get(MessageType.SET_TASK_CONTAINER, {}).get(message.key)
            processor_id = assignment.value("containerId") if assignment else None
        if processor_id is None or message.is_tombstone:
            return False
        moved_from, host = self._moved.get(processor_id, (-1, None))
        try:
            written_by = wire.epoch(message)
            if written_by is None:
                return False
            is_moved = written_by <= moved_from and wire.host(message) != host
            return is_moved or written_by < self._epoch_of(processor_id)
        except WireError:
            return False  # the reader of the value reports it

    def _epoch_of(self, processor_id: str) -> int:
        current = self._latest.get(MessageType.SET_PROCESSOR_EPOCH, {}).get(processor_id)
        return -1 if current is None else wire.number(current, "epoch")

    def _note_failover(self, message: CoordinatorStreamMessage) -> None:
        if message.is_tombstone:
            self._moved.pop(message.key, None)
            return
        try:
            self._moved[message.key] = (wire.number(message, "epoch"), wire.host(message))
            standby = message.value("standby")
            if standby:
                self._moved[standby] = (self._epoch_of(standby), None)
        except WireError:
            return  # the reader of the value reports it


class EmptyCoordinatorStream(StreamState):
    """The stream of a job that was never submitted: it has no record, and takes none."""

    def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
        """Return no records."""
        return ()

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Raise InvariantViolation: there is no topic to write to."""
        raise InvariantViolation(f"no coordinator stream takes {len(list(messages))} records")
