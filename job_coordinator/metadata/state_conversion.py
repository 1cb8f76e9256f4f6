"""The conversion of a store's values: what has begun, and the records of its end.

A conversion appends a value for each key behind the ends that its changelog's partitions had at its
beginning. What lies behind these ends is therefore converted, and nothing else is: a conversion
that was cut off goes on from there, and converts no value twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from homeport.config.config import INT_MAX
from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number
from homeport.job_coordinator.coordinator_stream.reading import RecordManager
from homeport.job_coordinator.metadata.state_facts import (
    Reading,
    StateFactManager,
    StoreForms,
    of_changelog,
)
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from homeport.job_coordinator.model.wire_form import LARGEST

_TYPE = MessageType.SET_STATE_FACT
_TO, _ENDS = "converting ", "converted-behind "
_IN_A_RECORD = 256
"""So many partitions have their ends in one record."""


@dataclass(frozen=True)
class Conversion:
    """A conversion that was begun: its changelog, and the form of its new values, in brief.

    ``ends`` {partition: its end at the beginning}: values behind it are converted, no others.
    """

    changelog: str
    form: str
    ends: Mapping[int, int]


class ConversionManager(RecordManager):
    """The conversion that is under way: set-state-fact, and the phase in set-state-reset."""

    def begun(self) -> StateReset:
        """Return the record that lets nothing start: the last reset stays known in it.

        ConfigError: a reset, or the deletion of the job, is unfinished.
        """
        if not self.is_under_way():
            StateResetManager(self._stream).require_finished()
        last = StateResetManager(self._stream).read()
        return replace(last or StateReset(0, ResetPhase.CONVERTING), phase=ResetPhase.CONVERTING)

    def is_under_way(self) -> bool:
        """Return whether one was begun and not finished."""
        last = StateResetManager(self._stream).read()
        return last is not None and last.phase is ResetPhase.CONVERTING

    def read(self) -> Conversion | None:
        """Return the one whose ends are written; None: no value is converted yet.

        WireError: a record is damaged; values would be converted twice.
        """
        facts = self._stream.latest(_TYPE)
        found = [key for key in facts if key.startswith(_TO)]
        if not found:
            return None
        ends: dict[int, int] = {}
        for key, message in facts.items():
            if key.startswith(_ENDS):
                ends |= _numbers(message)
        form = facts[found[0]].value("msg")
        if len(found) > 1 or not form:
            raise WireError(f"{_TYPE} {found[0]!r}: the form of values is missing, or not alone")
        return Conversion(found[0].removeprefix(_TO), form, ends)

    def write(self, conversion: Conversion) -> None:
        """Write the ends, before any value is converted."""
        self._stream.write(_messages(conversion))

    def finish(self, conversion: Conversion, forms: StoreForms, reading: Reading) -> None:
        """Write that all values are in the form of ``reading``, and that the job may start.

        ``forms``: what the store's first container would write down. What was known of the former
        values goes.
        """
        changelog, facts = conversion.changelog, StateFactManager(self._stream)
        gone = [*of_changelog(self._stream, changelog), *(m.key for m in _messages(conversion))]
        self._stream.write(
            [
                *(wire.tombstone(_TYPE, key) for key in gone),
                *facts.first_messages(changelog, forms, reading),
                self._over(),
            ]
        )

    def give_up(self) -> None:
        """Write that the job may start: one was begun, and has changed nothing."""
        self._stream.write([self._over()])

    def _over(self) -> CoordinatorStreamMessage:
        last = self.begun()
        is_reset = last.submission > 0
        return StateResetManager.message(
            replace(last, phase=ResetPhase.FINISHED) if is_reset else None
        )


def _messages(conversion: Conversion) -> Iterator[CoordinatorStreamMessage]:
    to = f"{_TO}{conversion.changelog}"
    yield CoordinatorStreamMessage(_TYPE, to, {"msg": conversion.form})
    for first in sorted({number // _IN_A_RECORD * _IN_A_RECORD for number in conversion.ends}):
        here = range(first, first + _IN_A_RECORD)
        values = {str(n): str(conversion.ends[n]) for n in here if n in conversion.ends}
        yield CoordinatorStreamMessage(_TYPE, f"{_ENDS}{first}", values)


def _numbers(message: CoordinatorStreamMessage) -> dict[int, int]:
    found: dict[int, int] = {}
    for text, end in (message.values or {}).items():
        number, offset = whole_number(text, INT_MAX), whole_number(end, LARGEST)
        if number is None or offset is None:
            rule = f"{text!r:.80} and {end!r:.80} are no partition and its end"
            raise WireError(f"{message.type} {message.key!r:.80}: {rule}")
        found[number] = offset
    return found
