"""The job's configuration in the coordinator stream: set-config."""

from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile

from homeport.config.config import LONG_MAX, Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import ListKey
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, read_all, read_last
from homeport.job_coordinator.model.list_change import ListChange

WRITER_SOURCE = "coordinator-stream-writer"
"""Source of the records of the tool of that name, which a deployment leaves alone."""
AM_SOURCE = "homeport"
"""Source of the records of the AM's programs."""
AM_KEYS = frozenset(
    key.name for key in (keys.YARN_AM_TRACKING_URL, keys.YARN_AM_CERTIFICATE, keys.YARN_AM_INPUTS)
)
"""What the AM writes about itself."""

_TRIES = 10
"""Writers that change one list within the same moment are people."""
_ADDED, _REMOVED, _WRITER = "added", "removed", "writer"
"""What the writer of a list has changed, beside the value, and a mark by which the writer finds its
own record among equal ones; Samza's readers do not look at them."""
_AUDITED_KEY = MessageType.SET_CONFIG.value


def change_list(
    stream: CoordinatorStream,
    key: ListKey,
    wanted: Callable[[tuple[str, ...]], ListChange],
    write: Callable[[CoordinatorStreamMessage], None],
    mark: str,
    file: Config | None = None,
) -> bool:
    """Change the key's items as ``wanted`` does; no other writer's change is lost.

    A record has the whole list and its writer's change. If another writer's record came between
    this call's read and its write, this call makes that writer's change again on the new list.

    Args:
        stream: the job's stream; it is read to its head.
        key: the key whose value is the list.
        wanted: makes the change; one that changes nothing is not written.
        write: puts the record into the stream, or raises ConfigError where it breaks a rule.
        mark: a text that no other call uses; by it this call finds its own record.
        file: the deployment's own configuration, in force where the stream has no record.

    Returns:
        Whether there was anything to change.

    Raises:
        ConfigError: the list would break a rule; the stream's list is without the change.
        UnavailableError: Kafka did not answer, or other writers change the list all the time.
    """
    stream.catch_up()
    items = _items(key, stream.latest(MessageType.SET_CONFIG).get(key.name), file)
    own = due = wanted(items)
    if own.of(items) == items:
        return False
    for _ in range(_TRIES):
        record = _list_record(key, due.of(items), due, mark)
        try:
            write(record)
        except ConfigError:
            if due is not own:  # the others' change has a right to its place
                due = due.then(own.undone)
                write(_list_record(key, due.of(items), due, mark))
            raise
        read = ((m, _items(key, m, file)) for m in stream.catch_up() if _is_of(key, m))
        lost = _overtaken(items, read, mark)
        if lost is None:
            return True
        due = lost.then(due)
        items = _items(key, stream.latest(MessageType.SET_CONFIG).get(key.name), file)
    raise UnavailableError(f"others are changing {key.name} all the time: give the command again")


def _is_of(key: ListKey, message: CoordinatorStreamMessage) -> bool:
    return message.type == MessageType.SET_CONFIG and message.key == key.name


def _overtaken(
    items: tuple[str, ...],
    read: Iterable[tuple[CoordinatorStreamMessage, tuple[str, ...]]],
    mark: str,
) -> ListChange | None:
    """Return the changes of the records between ``items`` and the own record; None: no record."""
    lost: ListChange | None = None
    for message, after in takewhile(lambda item: item[0].value(_WRITER) != mark, read):
        added, removed = message.value(_ADDED), message.value(_REMOVED)
        change = ListChange.between(items, after)
        if added is not None and removed is not None:
            change = ListChange(*(Config({"": t}).get_list("") for t in (added, removed)))
        lost, items = change if lost is None else lost.then(change), after
    return lost


def _items(
    key: ListKey, message: CoordinatorStreamMessage | None, file: Config | None
) -> tuple[str, ...]:
    value = None if message is None else message.value("value")
    return key.read((file or Config()) if value is None else Config({key.name: value}))


def _list_record(
    key: ListKey, items: tuple[str, ...], change: ListChange, mark: str
) -> CoordinatorStreamMessage:
    """Return the record of these items; without items it has an empty value, to say its change."""
    values = {
        "value": key.plain(",".join(items)),
        _ADDED: ",".join(change.added),
        _REMOVED: ",".join(change.removed),
        _WRITER: mark,
    }
    return CoordinatorStreamMessage(MessageType.SET_CONFIG, key.name, values)


class AuditedManager(RecordManager):
    """Up to where the records of keys are in the audit trail: set-audited.

    A driver writes down what was written while no driver ran.
    """

    def read(self) -> int | None:
        """Return the offset of the last record that is in the trail; None where it is not known."""
        return read_last(self._stream, MessageType.SET_AUDITED, _AUDITED_KEY, _offset)

    @staticmethod
    def message(offset: int) -> CoordinatorStreamMessage:
        """Return the record of that offset."""
        values = {"offset": str(offset)}
        return CoordinatorStreamMessage(MessageType.SET_AUDITED, _AUDITED_KEY, values)


def _offset(message: CoordinatorStreamMessage) -> int | None:
    return whole_number(message.value("offset"), LONG_MAX)


class ConfigManager(RecordManager):
    """The job's configuration: set-config records.

    Source: COORD, "Job Coordinator"; the order of writing is Samza's.
    """

    def read(self) -> Config:
        """Return the configuration as of the last catch-up, without records that have no value."""
        texts = read_all(self._stream, MessageType.SET_CONFIG, lambda m: m.value("value"))
        return Config(texts)

    def deployed(self) -> Config:
        """Return what ``read`` does, without what the AM writes about itself."""
        return Config({k: v for k, v in self.read().items() if k not in AM_KEYS})

    def written(self) -> Config:
        """Return what the writer tool has set and not taken back: it beats a deployment's file."""
        messages = self._stream.latest(MessageType.SET_CONFIG).items()
        texts = {name: m.value("value") for name, m in messages if m.source == WRITER_SOURCE}
        return Config({name: text for name, text in texts.items() if text is not None})

    def set(self, key: str, value: str, source: str) -> None:
        """Set ``key`` to ``value`` until a ``replace`` without it."""
        self._stream.write([wire.set_config(key, value)._replace(source=source)])

    def replace(self, config: Mapping[str, str], source: str) -> None:
        """Replace the stream's configuration by ``config`` with ``written()`` laid over it.

        Records of other types are not touched.

        Order: all new keys, flushed; the stream read back to its head; then a tombstone for every
            key that is in neither. A reader that starts in between sees a key too many, never one
            too few.
        """
        kept = self.written()
        self._stream.write(
            wire.set_config(name, value)._replace(source=source)
            for name, value in sorted(config.items())
            if name not in kept
        )
        self._stream.catch_up()
        stored = self._stream.latest(MessageType.SET_CONFIG)
        stale = [name for name in stored if name not in config and name not in kept]
        self._stream.write(wire.tombstone(MessageType.SET_CONFIG, name) for name in sorted(stale))
        self._stream.catch_up()
