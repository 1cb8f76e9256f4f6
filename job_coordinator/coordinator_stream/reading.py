"""Reads all records of one type, and computes the records that bring the stream to a state.

A manager reads from the state of the stream's last catch-up and catches up itself only where it
says so. Its methods named ``messages`` give records without writing them, for a writer that puts
several kinds into one transaction. A record that its manager cannot read is left out with a
warning: one bad record must not stop a job.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class RecordManager:
    """Reads, and writes, the records of one kind, or of a few, in a coordinator stream."""

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream


def read_all(
    stream: CoordinatorStream,
    message_type: MessageType,
    read: Callable[[CoordinatorStreamMessage], _T | None],
) -> dict[str, _T]:
    """Return {key: value} of the records that ``read`` understands.

    A record for which ``read`` returns None is left out without a warning.
    """
    return _read(stream.latest(message_type), read)


def read_last(
    stream: CoordinatorStream,
    message_type: MessageType,
    key: str,
    read: Callable[[CoordinatorStreamMessage], _T | None],
) -> _T | None:
    """Return the value of that key's record; None: there is none, or ``read`` understands none."""
    message = stream.latest(message_type).get(key)
    return None if message is None else _read({key: message}, read).get(key)


def _read(
    messages: Mapping[str, CoordinatorStreamMessage],
    read: Callable[[CoordinatorStreamMessage], _T | None],
) -> dict[str, _T]:
    found = {}
    for key, message in messages.items():
        try:
            value = read(message)
        except WireError as error:
            _LOG.warning("coordinator stream: record left out: %s", error)
            continue
        if value is not None:
            found[key] = value
    return found


def exactly(
    stream: CoordinatorStream,
    message_type: MessageType,
    wanted: Iterable[CoordinatorStreamMessage],
    among: Collection[str] | None = None,
) -> tuple[CoordinatorStreamMessage, ...]:
    """Return records that turn the stream's state of one type into exactly ``wanted``.

    Deletions come first, as in Samza. A record that the stream has already is not written again.
    ``among``: the keys that may have to go; None: all.
    """
    said = stream.latest(message_type)
    messages = {message.key: message for message in wanted}
    known = said if among is None else said.keys() & among
    gone = sorted(key for key in known if key not in messages)
    return (
        *(wire.tombstone(message_type, key) for key in gone),
        *(
            message
            for key, message in sorted(messages.items())
            if key not in said or said[key].values != message.values
        ),
    )
