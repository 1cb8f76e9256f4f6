"""Packages of the job's code that were given to the running job, in the coordinator stream.

A package is a zip; its name is its sha256. It may be larger than a record, so it is stored in
pieces, in base64, and a last record has their number. A package with a missing or damaged piece
counts as absent.
"""

import base64
import binascii
import hashlib
import logging
from collections.abc import Collection

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager
from homeport.job_coordinator.model.job_package import (
    MAX_BYTES,
    PackageContents,
    contents_of,
    is_package_name,
)

_PIECE_BYTES = 96 * 1024
"""How much of the package one record has: in base64 an eighth of a topic's default limit."""
_ENVELOPE_BYTES = 1024
"""Room for a record's other contents: key, source, host, user, and Kafka's own fields."""
_LEAST_RECORD_BYTES = 2 * _ENVELOPE_BYTES
_MAX_PIECES = MAX_BYTES

_LOG = logging.getLogger(__name__)


class JobPackageManager(RecordManager):
    """The packages: set-package. Keys: ``<sha256>``, and ``<sha256>/<index>`` of its pieces."""

    def names(self) -> tuple[str, ...]:
        """Return the sha256 of each package whose last record is there, sorted."""
        return tuple(sorted(key for key in self._records() if is_package_name(key)))

    def read(self, name: str) -> bytes | None:
        """Return the zip with that sha256, as of the last catch-up; None where it is absent.

        A package with a missing or damaged piece is absent, with a warning in the log.
        """
        records = self._records()
        last = records.get(name)
        if last is None:
            return None
        try:
            return _joined(last, records)
        except WireError as error:
            _LOG.warning("coordinator stream: package left out: %s", error)
            return None

    def contents(self, name: str) -> PackageContents:
        """Return what the package stands for; one that is absent or damaged for itself."""
        data = self.read(name)
        try:
            return PackageContents(name) if data is None else contents_of(data)
        except WireError as error:
            _LOG.warning("coordinator stream: package %.12s: %s", name, error)
            return PackageContents(name)

    def write(self, data: bytes, record_limit: int | None = None) -> str:
        """Write the zip ``data`` into the stream; return its name.

        ``record_limit``: see ``messages``. A package that is there is not written again.

        WireError: the package is too large. Nothing was written.
        UnavailableError: Kafka did not answer. The package counts as absent; write it again.
        """
        name = hashlib.sha256(data).hexdigest()
        if self.read(name) is None:
            self._stream.write(self.messages(data, record_limit))
        return name

    @staticmethod
    def messages(data: bytes, record_limit: int | None = None) -> list[CoordinatorStreamMessage]:
        """Return the records of the zip ``data``: its pieces, then the one that completes it.

        ``record_limit``: bytes of the largest record that the topic takes; None: the default.

        WireError: ``data`` has more than MAX_BYTES, or records are too small for a piece.
        """
        if len(data) > MAX_BYTES:
            raise WireError(f"a package of {len(data)} bytes is larger than {MAX_BYTES}")
        size = _PIECE_BYTES
        if record_limit is not None:
            if record_limit < _LEAST_RECORD_BYTES:
                raise WireError(f"records of {record_limit} bytes are too small for a package")
            size = min(size, (record_limit - _ENVELOPE_BYTES) // 4 * 3)
        name = hashlib.sha256(data).hexdigest()
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        return [
            *(_piece(name, index, piece) for index, piece in enumerate(pieces)),
            CoordinatorStreamMessage(
                MessageType.SET_PACKAGE, name, {"pieces": str(len(pieces)), "bytes": str(len(data))}
            ),
        ]

    def messages_to_forget(self, keep: Collection[str] = ()) -> list[CoordinatorStreamMessage]:
        """Return tombstones of all packages in the stream, except those in ``keep``.

        The last record of a package is deleted before its pieces.
        """
        records = self._records()
        gone = [key for key in records if key.partition("/")[0] not in keep]
        return [
            wire.tombstone(MessageType.SET_PACKAGE, key)
            for key in sorted(gone, key=lambda key: ("/" in key, key))
        ]

    def forget(self, keep: Collection[str] = ()) -> None:
        """Remove all packages from the stream, but those in ``keep``."""
        self._stream.write(self.messages_to_forget(keep))

    def _records(self) -> dict[str, CoordinatorStreamMessage]:
        return dict(self._stream.latest(MessageType.SET_PACKAGE))


def _piece(name: str, index: int, data: bytes) -> CoordinatorStreamMessage:
    values = {"data": base64.b64encode(data).decode("ascii")}
    return CoordinatorStreamMessage(MessageType.SET_PACKAGE, f"{name}/{index}", values)


def _joined(last: CoordinatorStreamMessage, records: dict[str, CoordinatorStreamMessage]) -> bytes:
    count = wire.number(last, "pieces", maximum=_MAX_PIECES)
    size = wire.number(last, "bytes", maximum=MAX_BYTES)
    pieces = list[bytes]()
    for index in range(count):
        key = f"{last.key}/{index}"
        text = records[key].value("data") if key in records else None
        if text is None:
            raise WireError(f"{last.type} {last.key!r:.200}: piece {index} of {count} is not there")
        try:
            pieces.append(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            raise WireError(f"{last.type} {key!r:.200}: the piece is no base64") from None
    data = b"".join(pieces)
    if len(data) != size or hashlib.sha256(data).hexdigest() != last.key:
        raise WireError(f"{last.type} {last.key!r:.200}: the pieces are not those of the package")
    return data
