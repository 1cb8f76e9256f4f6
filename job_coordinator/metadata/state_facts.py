"""What the job's state was made with, in records that Homeport alone writes: set-state-fact.

Records of Samza's types can be written by its programs too, and by hand. A task's changelog
partition decides whose state it gets, and a store's serdes decide how that state is read: both are
kept here as they were when the state was made. Where a record of Samza's contradicts, this one is
right.

Source: COORD, benefit 3: two tasks must not "inter-mingle state".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from homeport.config.config import INT_MAX
from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, read_all
from homeport.job_coordinator.model.ids import TaskName

_TYPE = MessageType.SET_STATE_FACT
_PARTITIONS, _CHANGELOG = "partitions ", "changelog "
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which cannot be written again."""
_IN_A_RECORD = 256
"""So many changelog partitions have their tasks in one record: a job may have 100,000."""


class StoreForms(NamedTuple):
    """How the bytes of a store, and of its changelog, are read: the forms of keys and of values.

    A form is a serde's name, or its name, the fingerprint of its schema, and the schema.
    """

    key: str
    msg: str


class StateFactManager(RecordManager):
    """What the job's state was made with, as of the stream's last catch-up."""

    def partitions(self) -> dict[TaskName, int]:
        """{task: the changelog partition that has its state}; no two tasks have the same."""
        return {task: number for number, task in sorted(self._tasks().items())}

    def partition_messages(
        self, partitions: Mapping[TaskName, int]
    ) -> Iterator[CoordinatorStreamMessage]:
        """Yield records that add ``partitions`` to the stream; those of other tasks stay."""
        known = self._tasks()
        wanted = {**known, **{number: task for task, number in partitions.items()}}
        for first in sorted({number // _IN_A_RECORD * _IN_A_RECORD for number in wanted}):
            here = range(first, first + _IN_A_RECORD)
            tasks = {n: wanted[n] for n in here if n in wanted}
            if tasks != {n: known[n] for n in here if n in known}:
                values = {str(n): task for n, task in tasks.items()}
                yield CoordinatorStreamMessage(_TYPE, f"{_PARTITIONS}{first}", values)

    def forms(self) -> dict[str, StoreForms]:
        """{changelog: the forms of its keys and values}, of those that are known."""
        found = read_all(self._stream, _TYPE, _forms)
        return {key.removeprefix(_CHANGELOG): forms for key, forms in found.items()}

    def form_messages(self, forms: Mapping[str, StoreForms]) -> Iterator[CoordinatorStreamMessage]:
        """Yield records of the changelogs that the stream does not know yet."""
        known = self.forms()
        for changelog, form in sorted(forms.items()):
            if changelog not in known:
                yield CoordinatorStreamMessage(_TYPE, f"{_CHANGELOG}{changelog}", form._asdict())

    def _tasks(self) -> dict[int, TaskName]:
        found = read_all(self._stream, _TYPE, _tasks_of)
        return {number: task for tasks in found.values() for number, task in tasks.items()}


def _tasks_of(message: CoordinatorStreamMessage) -> dict[int, TaskName] | None:
    if not message.key.startswith(_PARTITIONS):
        return None
    found: dict[int, TaskName] = {}
    for text, task in (message.values or {}).items():
        number = whole_number(text, INT_MAX)
        if number is None or _HALF.search(task):
            rule = f"{text!r:.80} and {task!r:.80} are no partition and its task"
            raise WireError(f"{message.type} {message.key!r:.80}: {rule}")
        found[number] = TaskName(task)
    return found


def _forms(message: CoordinatorStreamMessage) -> StoreForms | None:
    if not message.key.startswith(_CHANGELOG):
        return None
    key, msg = message.value("key"), message.value("msg")
    if not key or not msg:
        raise WireError(f"{message.type} {message.key!r}: the form of key or msg is missing")
    return StoreForms(key, msg)
