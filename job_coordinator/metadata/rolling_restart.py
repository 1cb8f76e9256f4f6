"""Manager of rolling restarts: set-upgrade, under keys of its own.

The driver alone writes ``configuration``, with the JobModel of the changed configuration, and then
as it restarts one container after the other. The tool that sets a key writes ``at-once`` beside it
where all containers are to restart together. A record is void for another run of the job.

How it reads: see ``reading``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import parse_json
from homeport.job_coordinator.coordinator_stream.reading import read_all
from homeport.job_coordinator.metadata.upgrade import state_of, state_values, text_of
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.rolling_restart import RollingRestart

ROLLING_KEY = "configuration"
AT_ONCE_KEY = "at-once"
SUBJECT = "configuration"


class RollingRestartManager:
    """The last rolling restart of a job, as of the stream's last catch-up."""

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream

    def read(self, application: str) -> RollingRestart | None:
        """Return how far that run's has come; None where there is none, or it is damaged."""
        found = read_all(self._stream, MessageType.SET_UPGRADE, _rolling).get(ROLLING_KEY)
        return found if found is not None and found.state.application == application else None

    def at_once(self) -> str | None:
        """Return the digest of the key and value with which all are to restart; None: of none."""
        return read_all(self._stream, MessageType.SET_UPGRADE, _at_once).get(AT_ONCE_KEY)

    def at_once_messages(
        self, key: str, value: str | None, *, is_at_once: bool
    ) -> Iterator[CoordinatorStreamMessage]:
        """Yield what is written with that value of the key; what an earlier order left goes."""
        if is_at_once:
            values = {"digest": digest_of(key, value)}
            yield CoordinatorStreamMessage(MessageType.SET_UPGRADE, AT_ONCE_KEY, values)
        elif AT_ONCE_KEY in self._stream.latest(MessageType.SET_UPGRADE):
            yield wire.tombstone(MessageType.SET_UPGRADE, AT_ONCE_KEY)

    @staticmethod
    def message(rolling: RollingRestart) -> CoordinatorStreamMessage:
        """Return the record; it takes the place of the one before."""
        values = {
            **state_values(rolling.state),
            "version": str(rolling.version),
            "first": str(rolling.first),
            **({} if rolling.back is None else {"back": str(rolling.back)}),
            "former": compact_json(dict(rolling.former)).decode(),
        }
        return CoordinatorStreamMessage(MessageType.SET_UPGRADE, ROLLING_KEY, values)

    @staticmethod
    def former_messages(rolling: RollingRestart) -> list[CoordinatorStreamMessage]:
        """Return the records by which the configuration has the former values again."""
        return [
            wire.tombstone(MessageType.SET_CONFIG, key)
            if value is None
            else wire.set_config(key, value)
            for key, value in sorted(rolling.former.items())
        ]


def digest_of(key: str, value: str | None) -> str:
    """Return the digest of one key's value; None: the key is deleted."""
    return hashlib.sha256(compact_json([key, value])).hexdigest()


def is_at_once(digest: str | None, names: Iterable[str], config: Config) -> bool:
    """Return whether the value of one key is all that changed, and was written with that digest.

    A deletion brings the deployment's value back, and is written with None.
    """
    changed = list(names)
    if digest is None or len(changed) != 1:
        return False
    (key,) = changed
    return digest in {digest_of(key, config.get(key)), digest_of(key, None)}


def _rolling(message: CoordinatorStreamMessage) -> RollingRestart | None:
    if message.key != ROLLING_KEY:
        return None
    former = parse_json(message.value("former") or "", "map former")
    if not isinstance(former, dict) or not all(
        value is None or isinstance(value, str) for value in former.values()
    ):
        raise WireError(f"{message.type} {message.key!r}: 'former' is no map of values")
    return RollingRestart(
        replace(state_of(message, text_of), subject=SUBJECT),
        wire.number(message, "version"),
        wire.number(message, "first"),
        wire.number(message, "back") if message.value("back") else None,
        former,
    )


def _at_once(message: CoordinatorStreamMessage) -> str | None:
    return text_of(message, "digest") if message.key == AT_ONCE_KEY else None
