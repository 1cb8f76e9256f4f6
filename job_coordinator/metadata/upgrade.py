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

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.config.secret_names import shown_value
from homeport.config.secret_values import MASK
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import parse_json
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, read_last
from homeport.job_coordinator.coordinator_stream.record_values import decoded, record_of
from homeport.job_coordinator.model.job_package import Package, is_package_name
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.upgrade import (
    SUBJECT,
    RollingRestart,
    UpgradeDirection,
    UpgradeOrder,
    UpgradeOrders,
    UpgradeState,
)
from homeport.job_coordinator.model.wire_form import Text

ORDER_KEY = "order"
UNDO_KEY = "undo"
STATE_KEY = "state"
REFUSED_KEY = "refused"
SUBMITTED_KEY = "submitted"
ROLLING_KEY = "configuration"
AT_ONCE_KEY = "at-once"
_ORDER_KEYS = {UpgradeDirection.FORWARD: ORDER_KEY, UpgradeDirection.BACK: UNDO_KEY}


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why the driver has refused the order ``subject``, for good."""

    application: Text
    subject: Text
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Submitted:
    application: Text
    subject: Package


_T = TypeVar("_T", UpgradeOrder, UpgradeState, _Refusal, _Submitted)


class UpgradeManager(RecordManager):
    """The last upgrade of a job, as of the stream's last catch-up."""

    def orders(self, application: str) -> UpgradeOrders:
        """Return the orders for that run of the job, without damaged ones."""
        forward, back = (self._own(key, order_of, application) for key in (ORDER_KEY, UNDO_KEY))
        refused = self._own(REFUSED_KEY, partial(decoded, _Refusal), application)
        if refused is None:
            return UpgradeOrders(forward, back)
        return UpgradeOrders(forward, back, refused.subject, refused.why)

    def last_state(self) -> UpgradeState | None:
        """Return the record of the last upgrade, of any run; None: no record, or a damaged one."""
        return read_last(self._stream, MessageType.SET_UPGRADE, STATE_KEY, _state_of)

    def state(self, application: str) -> UpgradeState | None:
        """Return the progress of that run's upgrade; None: no record, or a damaged one."""
        return self._own(STATE_KEY, _state_of, application)

    def submitted(self, application: str) -> str | None:
        """Return the package of that run's submission; None: not known."""
        found = self._own(SUBMITTED_KEY, partial(decoded, _Submitted), application)
        return None if found is None else found.subject

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

    def _own(
        self, key: str, decode: Callable[[CoordinatorStreamMessage], _T | None], application: str
    ) -> _T | None:
        found = read_last(self._stream, MessageType.SET_UPGRADE, key, decode)
        return found if found is not None and found.application == application else None

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
        refusal = _Refusal(order.application, order.id, why)
        return record_of(MessageType.SET_UPGRADE, REFUSED_KEY, refusal)

    @staticmethod
    def submitted_message(application: str, package: str) -> CoordinatorStreamMessage:
        """Return the record of the package that was submitted with that run of the job."""
        submitted = _Submitted(application, package)
        return record_of(MessageType.SET_UPGRADE, SUBMITTED_KEY, submitted)

    @staticmethod
    def state_message(state: UpgradeState) -> CoordinatorStreamMessage:
        """Return the record of an upgrade's progress; it replaces the earlier such record."""
        return CoordinatorStreamMessage(MessageType.SET_UPGRADE, STATE_KEY, _state_values(state))


def _state_values(state: UpgradeState) -> dict[str, str]:
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


def order_of(message: CoordinatorStreamMessage) -> UpgradeOrder | None:
    """Return the order in a record of an upgrade; None where it is another record.

    WireError: a value is missing or wrong.
    """
    if message.key not in _ORDER_KEYS.values():
        return None
    order = replace(decoded(UpgradeOrder, message), by=message.username)
    direction = message.value("direction")
    if direction is None or _ORDER_KEYS[order.direction] != message.key:
        raise WireError(f"{message.type} {message.key!r}: its direction is {direction}")
    return order


def _state_of(message: CoordinatorStreamMessage) -> UpgradeState:
    _require_phase(message)
    state = decoded(UpgradeState, message)
    for name in (state.package, state.previous):
        if name is not None and not is_package_name(name):
            raise WireError(f"{message.type} {message.key!r}: no sha256: {name!r:.200}")
    return state


def _require_phase(message: CoordinatorStreamMessage) -> None:
    """Require that the record has a phase: the default is of an upgrade that begins."""
    if message.value("phase") is None:
        raise WireError(f"{message.type} {message.key!r}: no phase")


class RollingRestartManager(RecordManager):
    """The last rolling restart of a job, as of the stream's last catch-up."""

    def read(self, application: str) -> RollingRestart | None:
        """Return how far that run's has come; None where there is none, or it is damaged."""
        found = read_last(self._stream, MessageType.SET_UPGRADE, ROLLING_KEY, _rolling)
        return found if found is not None and found.state.application == application else None

    def at_once(self) -> str | None:
        """Return the digest of the key and value with which all are to restart; None: of none."""
        record = self._stream.latest(MessageType.SET_UPGRADE).get(AT_ONCE_KEY)
        return None if record is None else record.value("digest")

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
        """Return the record of ``rolling``; it replaces the earlier such record."""
        values = {
            **_state_values(rolling.state),
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


def _rolling(message: CoordinatorStreamMessage) -> RollingRestart:
    _require_phase(message)
    found = decoded(RollingRestart, message)
    return replace(found, state=replace(found.state, subject=SUBJECT))
