"""Audits changes of the running job that come by the coordinator stream.

The driver audits each record of an operator's tool when it reads it, also records that were written
while no driver ran. A change by HTTP is in the audit trail already when its record comes back by
the stream: it is not audited twice.
"""

from collections.abc import Iterable

from homeport.config.access_tokens import NamedToken, named_tokens
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TokensKey
from homeport.config.errors import ConfigError, WireError
from homeport.config.secret_names import shown_value
from homeport.config.secret_values import MASK
from homeport.job_coordinator.coordinator_stream.coordinator_stream import (
    CoordinatorStream,
    KeyRecord,
)
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.audit import UNKNOWN, AuditTrail, Change
from homeport.job_coordinator.metadata.configuration import AM_KEYS, AM_SOURCE, AuditedManager
from homeport.job_coordinator.metadata.upgrade import order_of
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.placement import (
    CANCEL,
    FORCE_RESTART_LAST_SEEN,
    PlacementRequest,
)
from homeport.job_coordinator.model.upgrade import UpgradeDirection, UpgradeOrder

_STREAM = "the coordinator stream"


def placement_named(request: PlacementRequest) -> str:
    """Return a request in words, such as ``move 0``."""
    words = {FORCE_RESTART_LAST_SEEN: "restart", CANCEL: "cancel"}
    how = words.get(request.destination, "warm move" if request.is_warm else "move")
    return f"{how} {request.processor_id}"


class AuditedChanges:
    """Audits the records of the stream, on the driver's event loop.

    At the start it audits the records after the last one that an earlier driver audited. Where no
    record has that offset, as in a job's first run, the records at the start are no changes.

    ``history`` gets each change too. ``stream``: read to its head.
    """

    def __init__(self, history: HistoryWriter, stream: CoordinatorStream) -> None:
        self.trail = AuditTrail(lambda change: history.event("audit", **change))
        self._by_http: list[CoordinatorStreamMessage] = []
        self._requests_by_http: set[str] = set()
        self._noted = self._position = AuditedManager(stream).read()
        known = self._position
        for record in stream.taken_keys():
            if known is not None and record.offset > known:
                self._written(record)
            self._position = record.offset

    def follow(self, records: Iterable[KeyRecord]) -> int | None:
        """Audit new records; return the offset up to which all are audited, if it is new."""
        for record in records:
            self._written(record)
            self._position = record.offset
        return None if self._position == self._noted else self._position

    def noted(self, offset: int) -> None:
        """Note that the stream has this offset, for the next driver."""
        self._noted = offset

    def requested_by_http(self, request: str) -> None:
        """Note that the request with this uuid comes by HTTP."""
        self._requests_by_http.add(request)

    def by_http(self, records: Iterable[CoordinatorStreamMessage]) -> None:
        """Note that these records of keys come by HTTP; another thread may call it."""
        self._by_http.extend(records)

    def not_written(self, records: Iterable[CoordinatorStreamMessage]) -> None:
        """Forget records that were perhaps not written: a second line is better than none."""
        self._by_http = [known for known in self._by_http if known not in [*records]]

    def _written(self, record: KeyRecord) -> None:
        if record.after.type == MessageType.SET_CONFIG:
            self._changed(record)
        elif order := _order(record.after):
            self._ordered(order)

    def _changed(self, record: KeyRecord) -> None:
        key, old, new = record.key, record.before, record.after
        if new in self._by_http:
            self._by_http.remove(new)
            return
        is_the_ams = new.is_tombstone or new.source == AM_SOURCE
        if (key in AM_KEYS and is_the_ams) or (_value(old), _source(old)) == (
            _value(new),
            _source(new),
        ):
            return
        author, address, through = UNKNOWN, UNKNOWN, _STREAM
        if not new.is_tombstone:  # the record of a deletion has no room for them
            author, address = new.username or UNKNOWN, new.host or UNKNOWN
            through = new.source or _STREAM
        shown = _shown(key, _value(old), _value(new))
        self.trail.add(Change(author, address, through, f"config {key}", *shown))

    def requested(self, request: PlacementRequest, host: Host | None) -> None:
        """Audit a request that the driver has taken; ``host``: its container's host, if any."""
        if request.uuid in self._requests_by_http:
            self._requests_by_http.discard(request.uuid)
            return
        what = placement_named(request)
        self.trail.add(Change(UNKNOWN, UNKNOWN, _STREAM, what, host, request.destination))

    def _ordered(self, order: UpgradeOrder) -> None:
        is_back = order.direction is UpgradeDirection.BACK
        what = "upgrade --undo" if is_back else "upgrade"
        self.trail.add(Change(order.by or UNKNOWN, UNKNOWN, _STREAM, what, None, order.package))


def _order(message: CoordinatorStreamMessage) -> UpgradeOrder | None:
    try:
        return order_of(message)
    except WireError:
        return None


def _value(message: CoordinatorStreamMessage | None) -> str | None:
    return None if message is None else message.value("value")


def _source(message: CoordinatorStreamMessage | None) -> str | None:
    return None if message is None or message.is_tombstone else message.source


def _shown(key: str, old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Return both values with secrets masked; of tokens the names, never the digests."""
    if not isinstance(keys.declared(key), TokensKey):
        before, after = (None if v is None else shown_value(key, v) for v in (old, new))
        return before, after
    known, now = _tokens(key, old), _tokens(key, new)
    before = None if old is None else MASK if known is None else ", ".join(t.name for t in known)
    if new is None or now is None:
        return before, None if new is None else MASK
    # A digest that was exchanged under a name that stays is another token.
    return before, ", ".join(t.name if t in (known or ()) else f"{t.name} (new)" for t in now)


def _tokens(key: str, value: str | None) -> tuple[NamedToken, ...] | None:
    """Return the tokens in a value; None where it has another form, and may be a token itself."""
    try:
        return named_tokens(key, Config({key: value or ""}).get_list(key))
    except ConfigError:
        return None
