"""Manager of upgrades container by container: set-upgrade.

Two records: ``order``, which an operator's command writes, and ``state``, which the driver alone
writes. Both name the application that they are for; for another one they are void.

How it reads: see ``reading``.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import parse_json
from homeport.job_coordinator.coordinator_stream.reading import read_all
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_package import is_package_name
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradePhase,
    UpgradeState,
)

ORDER_KEY = "order"
STATE_KEY = "state"


class UpgradeManager:
    """The last upgrade of a job, as of the stream's last catch-up."""

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream

    def order(self, application: str) -> UpgradeOrder | None:
        """What was ordered for that run of the job; None where nothing was, or it is damaged."""
        found = read_all(self._stream, MessageType.SET_UPGRADE, _order).get(ORDER_KEY)
        return found if found is not None and found.application == application else None

    def state(self, application: str) -> UpgradeState | None:
        """How far that run's upgrade has come; None where there is none, or it is damaged."""
        found = read_all(self._stream, MessageType.SET_UPGRADE, _state).get(STATE_KEY)
        return found if found is not None and found.application == application else None

    def messages_of_a_new_run(self, application: str) -> Iterator[CoordinatorStreamMessage]:
        """Tombstones of what is void for that run of the job, damaged records too."""
        known = {ORDER_KEY: self.order(application), STATE_KEY: self.state(application)}
        for key in sorted(self._stream.latest(MessageType.SET_UPGRADE)):
            if known.get(key) is None:
                yield wire.tombstone(MessageType.SET_UPGRADE, key)

    @staticmethod
    def order_message(order: UpgradeOrder) -> CoordinatorStreamMessage:
        """The record of an order; its writer stamps the user where the order names none."""
        values = {
            "id": order.id,
            "application": order.application,
            "package": order.package,
            "watch-ms": str(order.watch_ms),
            "direction": order.direction.value,
        }
        return CoordinatorStreamMessage(
            MessageType.SET_UPGRADE, ORDER_KEY, values, username=order.by
        )

    @staticmethod
    def state_message(state: UpgradeState) -> CoordinatorStreamMessage:
        """The record of how far an upgrade has come; it takes the place of the one before."""
        known = {
            "previous": state.previous,
            "current": state.current,
            "lag-before": None if state.lag_before is None else str(state.lag_before),
        }
        values = {
            "id": state.id,
            "application": state.application,
            "package": state.package,
            "watch-ms": str(state.watch_ms),
            "phase": state.phase.value,
            "given": compact_json(list(state.given)).decode(),
            **{name: text for name, text in known.items() if text is not None},
            "reason": state.reason,
            "last-line": state.last_line,
        }
        return CoordinatorStreamMessage(MessageType.SET_UPGRADE, STATE_KEY, values)


def _order(message: CoordinatorStreamMessage) -> UpgradeOrder | None:
    if message.key != ORDER_KEY:
        return None
    try:
        direction = UpgradeDirection(message.value("direction") or "")
    except ValueError as error:
        raise WireError(f"{message.type} {message.key!r}: {error}") from None
    return UpgradeOrder(
        _text(message, "id"),
        _text(message, "application"),
        _package(message, "package"),
        wire.number(message, "watch-ms"),
        direction,
        message.username,
    )


def _state(message: CoordinatorStreamMessage) -> UpgradeState | None:
    if message.key != STATE_KEY:
        return None
    try:
        phase = UpgradePhase(message.value("phase") or "")
    except ValueError as error:
        raise WireError(f"{message.type} {message.key!r}: {error}") from None
    current, lag_before = message.value("current"), message.value("lag-before")
    return UpgradeState(
        _text(message, "id"),
        _text(message, "application"),
        _package(message, "package"),
        _package(message, "previous") if message.value("previous") else None,
        wire.number(message, "watch-ms"),
        phase,
        _given(message),
        ProcessorId(current) if current else None,
        None if lag_before is None else wire.number(message, "lag-before"),
        message.value("reason") or "",
        message.value("last-line") or "",
    )


def _text(message: CoordinatorStreamMessage, name: str) -> str:
    text = message.value(name)
    if not text:
        raise WireError(f"{message.type} {message.key!r}: no {name}")
    return text


def _package(message: CoordinatorStreamMessage, name: str) -> str:
    """Launchers refuse an order that names a package otherwise."""
    package = _text(message, name)
    if not is_package_name(package):
        raise WireError(f"{message.type} {message.key!r}: {name} is no sha256: {package!r:.200}")
    return package


def _given(message: CoordinatorStreamMessage) -> tuple[ProcessorId, ...]:
    found = parse_json(message.value("given") or "[]", "list given")
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise WireError(f"{message.type} {message.key!r}: 'given' is no list: {found!r:.200}")
    return tuple(ProcessorId(text) for text in found)
