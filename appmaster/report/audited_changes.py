"""Changes of the running job that come by the coordinator stream, in the audit trail.

Whatever an operator's tool has written is audited when the driver sees it. What came by HTTP
is in the trail already, and comes back by the stream: it is not audited twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from homeport.config.declarations import all_keys as keys
from homeport.config.secret_names import shown_value
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.audit import UNKNOWN, AuditTrail, Change
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.placement import (
    CANCEL,
    FORCE_RESTART_LAST_SEEN,
    PlacementRequest,
)
from homeport.job_coordinator.model.upgrade import UpgradeDirection, UpgradeOrder

_OF_THE_AM = frozenset({keys.YARN_AM_TRACKING_URL.name, keys.YARN_AM_CERTIFICATE.name})
_STREAM = "the coordinator stream"


def placement_named(request: PlacementRequest) -> str:
    """What a request asks, as ``move 0``."""
    words = {FORCE_RESTART_LAST_SEEN: "restart", CANCEL: "cancel"}
    how = words.get(request.destination, "warm move" if request.is_warm else "move")
    return f"{how} {request.processor_id}"


class AuditedChanges:
    """To be used on the driver's event loop. ``history``: of the job; it gets each change too."""

    def __init__(self, history: HistoryWriter) -> None:
        self.trail = AuditTrail(lambda change: history.event("audit", **change))
        self._written: Mapping[str, CoordinatorStreamMessage] | None = None
        self._values_by_http: set[tuple[str, str | None]] = set()
        self._requests_by_http: set[str] = set()

    def by_http(self, *, request: str = "", key: str = "", value: str | None = None) -> None:
        """A request of that uuid, or that value of a key (None: none), comes by HTTP."""
        if request:
            self._requests_by_http.add(request)
        if key:
            self._values_by_http.add((key, value))

    def configured(self, written: Mapping[str, CoordinatorStreamMessage]) -> None:
        """The stream has these records of keys now; those of the first call are no change."""
        before, self._written = self._written, written
        if before is None or before is written:
            return
        for key in sorted({*before, *written} - _OF_THE_AM):
            old, new = before.get(key), written.get(key)
            if old is not new and old != new:
                self._changed(key, old, new)

    def _changed(
        self,
        key: str,
        old: CoordinatorStreamMessage | None,
        new: CoordinatorStreamMessage | None,
    ) -> None:
        if (key, _value(new)) in self._values_by_http:
            self._values_by_http.discard((key, _value(new)))
            return
        author, address, through = UNKNOWN, UNKNOWN, _STREAM
        if new is not None:  # the record of a deletion has no room for them
            author, address = new.username or UNKNOWN, new.host or UNKNOWN
            through = new.source or _STREAM
        self.trail.add(
            Change(author, address, through, f"config {key}", _shown(key, old), _shown(key, new))
        )

    def requested(self, request: PlacementRequest, host: Host | None) -> None:
        """The driver has taken a request about a container, which runs on ``host`` (None: not)."""
        if request.uuid in self._requests_by_http:
            self._requests_by_http.discard(request.uuid)
            return
        what = placement_named(request)
        self.trail.add(Change(UNKNOWN, UNKNOWN, _STREAM, what, host, request.destination))

    def upgrade_ordered(self, order: UpgradeOrder) -> None:
        """The driver has read an order of an upgrade, or to take it back."""
        is_back = order.direction is UpgradeDirection.BACK
        what = "upgrade --undo" if is_back else "upgrade"
        self.trail.add(Change(order.by or UNKNOWN, UNKNOWN, _STREAM, what, None, order.package))


def _value(message: CoordinatorStreamMessage | None) -> str | None:
    return None if message is None else message.value("value")


def _shown(key: str, message: CoordinatorStreamMessage | None) -> str | None:
    value = _value(message)
    return None if value is None else shown_value(key, value)
