"""Manager of upgrades container by container: set-upgrade.

An operator's command writes ``order``, or ``undo`` to take an upgrade back: neither takes the
other's place. The driver alone writes ``state``, and ``refused`` where it does not take an order.
``run-job`` writes ``submitted``, the package of its submission. Each names the application that it
is for, and is void for another one.

A rolling restart has keys of its own. The driver alone writes ``configuration``, with the JobModel
of the changed configuration, and then as it restarts one container after the other. The tool that
sets a key writes ``at-once`` beside it where all containers restart together.

How it reads: see ``reading``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.config.secret_names import shown_value
from homeport.config.secret_values import MASK
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import parse_json
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, processors, read_all
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_package import is_package_name
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.upgrade import (
    SUBJECT,
    RollingRestart,
    UpgradeDirection,
    UpgradeOrder,
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)

_T = TypeVar("_T")

ORDER_KEY = "order"
UNDO_KEY = "undo"
STATE_KEY = "state"
REFUSED_KEY = "refused"
SUBMITTED_KEY = "submitted"
ROLLING_KEY = "configuration"
AT_ONCE_KEY = "at-once"
_ORDER_KEYS = {UpgradeDirection.FORWARD: ORDER_KEY, UpgradeDirection.BACK: UNDO_KEY}


class UpgradeManager(RecordManager):
    """The last upgrade of a job, as of the stream's last catch-up."""

    def orders(self, application: str) -> UpgradeOrders:
        """Return the orders for that run of the job, without damaged ones."""
        known = self._of_keys(order_of)
        own = {key: order for key, order in known.items() if order.application == application}
        forward, back = own.get(ORDER_KEY), own.get(UNDO_KEY)
        refused = self._of_keys(_note).get(REFUSED_KEY)
        if refused is None or refused.application != application:
            return UpgradeOrders(forward, back)
        return UpgradeOrders(forward, back, refused.subject, refused.why)

    def last_state(self) -> UpgradeState | None:
        """Return the record of the last upgrade, of any run; None: none, or it is damaged."""
        return self._of_keys(_state).get(STATE_KEY)

    def state(self, application: str) -> UpgradeState | None:
        """Return how far that run's upgrade has come; None: there is none, or it is damaged."""
        found = self.last_state()
        return found if found is not None and found.application == application else None

    def submitted(self, application: str) -> str | None:
        """Return the package of that run's submission; None: not known."""
        found = self._of_keys(_note).get(SUBMITTED_KEY)
        is_own = found is not None and found.application == application
        return found.subject if found is not None and is_own else None

    def messages_of_a_new_run(self, application: str) -> Iterator[CoordinatorStreamMessage]:
        """Yield tombstones of what is void for that run of the job, damaged records too."""
        orders = self.orders(application)
        known = {
            ORDER_KEY: orders.forward,
            UNDO_KEY: orders.back,
            REFUSED_KEY: orders.refused,
            STATE_KEY: self.state(application),
            # Its client writes this one beside the AM, perhaps since it was read here.
            SUBMITTED_KEY: SUBMITTED_KEY,
        }
        for key in sorted(self._stream.latest(MessageType.SET_UPGRADE)):
            if known.get(key) is None:
                yield wire.tombstone(MessageType.SET_UPGRADE, key)

    def _of_keys(self, decode: Callable[[CoordinatorStreamMessage], _T | None]) -> dict[str, _T]:
        return read_all(self._stream, MessageType.SET_UPGRADE, decode)

    @staticmethod
    def order_message(order: UpgradeOrder) -> CoordinatorStreamMessage:
        """Return the record of an order; its writer stamps the user where it names none."""
        values = {
            "id": order.id,
            "application": order.application,
            "package": order.package,
            "watch-ms": str(order.watch_ms),
            "direction": order.direction.value,
        }
        key = _ORDER_KEYS[order.direction]
        return CoordinatorStreamMessage(MessageType.SET_UPGRADE, key, values, username=order.by)

    @staticmethod
    def refusal_message(order: UpgradeOrder, why: str) -> CoordinatorStreamMessage:
        """Return the record that refuses that order, for good."""
        values = {"application": order.application, "subject": order.id, "why": why}
        return CoordinatorStreamMessage(MessageType.SET_UPGRADE, REFUSED_KEY, values)

    @staticmethod
    def submitted_message(application: str, package: str) -> CoordinatorStreamMessage:
        """Return the record of the package that was submitted with that run of the job."""
        values = {"application": application, "subject": package}
        return CoordinatorStreamMessage(MessageType.SET_UPGRADE, SUBMITTED_KEY, values)

    @staticmethod
    def state_message(state: UpgradeState) -> CoordinatorStreamMessage:
        """Return the record of how far an upgrade has come; it replaces the one before."""
        return CoordinatorStreamMessage(MessageType.SET_UPGRADE, STATE_KEY, state_values(state))


def state_values(state: UpgradeState) -> dict[str, str]:
    """Return the values of a record that has ``state``."""
    known = {
        "previous": state.previous,
        "current": state.current,
        "lag-before": None if state.lag_before is None else str(state.lag_before),
    }
    return {
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


@dataclass(frozen=True, slots=True)
class _Note:
    """A fact of one run: of the order ``subject`` its refusal, of the submission its package."""

    application: str
    subject: str
    why: str


def _note(message: CoordinatorStreamMessage) -> _Note | None:
    if message.key not in {REFUSED_KEY, SUBMITTED_KEY}:
        return None
    subject = _package if message.key == SUBMITTED_KEY else text_of
    why = message.value("why") or ""
    return _Note(text_of(message, "application"), subject(message, "subject"), why)


def order_of(message: CoordinatorStreamMessage) -> UpgradeOrder | None:
    """Return the order in a record of an upgrade; None where it is another record.

    Raises:
        WireError: a value is missing or wrong.
    """
    if message.key not in _ORDER_KEYS.values():
        return None
    try:
        direction = UpgradeDirection(message.value("direction") or "")
    except ValueError as error:
        raise WireError(f"{message.type} {message.key!r}: {error}") from None
    if _ORDER_KEYS[direction] != message.key:
        raise WireError(f"{message.type} {message.key!r}: its direction is {direction.value}")
    return UpgradeOrder(
        text_of(message, "id"),
        text_of(message, "application"),
        _package(message, "package"),
        wire.number(message, "watch-ms"),
        direction,
        message.username,
    )


def _state(message: CoordinatorStreamMessage) -> UpgradeState | None:
    return state_of(message, _package) if message.key == STATE_KEY else None


def state_of(
    message: CoordinatorStreamMessage, release: Callable[[CoordinatorStreamMessage, str], str]
) -> UpgradeState:
    """Return the state in a record; ``release`` reads the name of a package, or fails.

    Raises:
        WireError: a value is missing or wrong.
    """
    try:
        phase = UpgradePhase(message.value("phase") or "")
    except ValueError as error:
        raise WireError(f"{message.type} {message.key!r}: {error}") from None
    current, lag_before = message.value("current"), message.value("lag-before")
    return UpgradeState(
        text_of(message, "id"),
        text_of(message, "application"),
        release(message, "package"),
        release(message, "previous") if message.value("previous") else None,
        wire.number(message, "watch-ms"),
        phase,
        processors(message, "given"),
        ProcessorId(current) if current else None,
        None if lag_before is None else wire.number(message, "lag-before"),
        message.value("reason") or "",
        message.value("last-line") or "",
    )


def text_of(message: CoordinatorStreamMessage, name: str) -> str:
    """Return the value of that name; WireError where it is missing or empty."""
    text = message.value(name)
    if not text:
        raise WireError(f"{message.type} {message.key!r}: no {name}")
    return text


def _package(message: CoordinatorStreamMessage, name: str) -> str:
    """Return the name; launchers refuse an order that names a package otherwise."""
    package = text_of(message, name)
    if not is_package_name(package):
        raise WireError(f"{message.type} {message.key!r}: {name} is no sha256: {package!r:.200}")
    return package


class RollingRestartManager(RecordManager):
    """The last rolling restart of a job, as of the stream's last catch-up."""

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


def shown_record(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a record with its secrets masked: former values, the digest of one."""
    shown = dict(values) | {name: MASK for name in ("digest", "former") if name in values}
    try:
        former = _former(values.get("former", ""))
    except WireError:
        return shown
    masked = {key: text and shown_value(key, text) for key, text in former.items()}
    return shown | {"former": compact_json(masked).decode()}


def _former(text: str) -> dict[str, str | None]:
    former = parse_json(text, "map former")
    if not isinstance(former, dict) or not all(
        value is None or isinstance(value, str) for value in former.values()
    ):
        raise WireError(f"'former' is no map of values: {len(text)} characters")
    return former


def _rolling(message: CoordinatorStreamMessage) -> RollingRestart | None:
    if message.key != ROLLING_KEY:
        return None
    return RollingRestart(
        replace(state_of(message, text_of), subject=SUBJECT),
        wire.number(message, "version"),
        wire.number(message, "first"),
        wire.number(message, "back") if message.value("back") else None,
        _former(message.value("former") or ""),
    )


def _at_once(message: CoordinatorStreamMessage) -> str | None:
    return text_of(message, "digest") if message.key == AT_ONCE_KEY else None
