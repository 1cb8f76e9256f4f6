"""Records what the job's state was made with: changelog partitions of tasks, serdes of stores.

Records of Samza's types (set-changelog) can be written by its programs too, and by hand. A task's
changelog partition decides whose state it gets, and a store's serdes decide how that state is read:
both are kept as they were when the state was made, in records that Homeport alone writes
(set-state-fact). Where a record of Samza's contradicts, this one is right.

Source: COORD, benefit 3: two tasks must not "inter-mingle state".
"""

import logging
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from homeport.config.config import INT_MAX
from homeport.config.errors import ConfigError, WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, read_all
from homeport.job_coordinator.metadata.task_assignment import TaskModeManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskMode

_LOG = logging.getLogger(__name__)
_TYPE = MessageType.SET_STATE_FACT
_CHANGELOG_TYPE = MessageType.SET_CHANGELOG.value
_PARTITIONS, _CHANGELOG = "partitions ", "changelog "
_WRITER, _READER, _ANNOUNCED, _CLAIM = "schema ", "reads ", "announced ", "begins "
_EVOLVED = "evolved "
"""Before the first form of values, if it does not read others: a former release refuses it."""
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


class Reading(NamedTuple):
    """How the newest container reads a store: forms, which may be of classes too.

    ``reader``: the schema of values as JSON, with defaults; empty: it has none, or a long one.
    """

    key: str
    msg: str
    reader: str = ""


class StoreSchemas(NamedTuple):
    """By what the values of a store, and of its changelog, were written.

    ``forms``: those of the first container. ``later``: forms of values that others wrote.
    ``announced``: the form of values, in brief, that run-job has admitted last.
    """

    forms: StoreForms
    later: tuple[str, ...] = ()
    reading: Reading | None = None
    announced: str = ""


class StateFactManager(RecordManager):
    """What the job's state was made with, as of the stream's last catch-up."""

    def partitions(self) -> dict[TaskName, int]:
        """Return {task: the changelog partition that has its state}; no two tasks have the same."""
        return {task: number for number, task in sorted(self._tasks().items())}

    def partition_records(self) -> dict[str, CoordinatorStreamMessage]:
        """Return {key: record} of those that have changelog partitions."""
        records = self._stream.latest(_TYPE).items()
        return {key: message for key, message in records if key.startswith(_PARTITIONS)}

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
        """Return {changelog: the forms of its keys and values}, of those that are known."""
        found = read_all(self._stream, _TYPE, _forms)
        return {key.removeprefix(_CHANGELOG): forms for key, forms in found.items()}

    def form_messages(self, forms: Mapping[str, StoreForms]) -> Iterator[CoordinatorStreamMessage]:
        """Yield records of the changelogs that the stream does not know yet."""
        known = self.forms()
        for changelog, form in sorted(forms.items()):
            if changelog not in known:
                yield CoordinatorStreamMessage(_TYPE, f"{_CHANGELOG}{changelog}", form._asdict())

    def claim(self, forms: Mapping[str, StoreForms]) -> dict[str, StoreForms]:
        """Claim changelogs that no container has begun; return {changelog: the first claim of it}.

        Those that another container has begun meanwhile are left out. ``forms``: in brief. Of
        containers with several schemas that start at once, one has the first claim in the stream,
        and none overwrites what another has written down.
        """
        began = self._claims()
        wanted = {changelog: _claim_of(changelog, form) for changelog, form in forms.items()}
        self._stream.write([m for m in wanted.values() if m.key not in began])
        new = [m.key for m in self._stream.catch_up() if m.type == _TYPE]
        claims, begun = self._claims(), self.forms()
        found: dict[str, StoreForms] = {}
        for changelog in forms.keys() - begun.keys():
            own, here = wanted[changelog].key, f"{_CLAIM}{changelog} "
            # The order of those that were there before is not known: others are the first.
            known = sorted((key for key in began if key.startswith(here)), key=own.__eq__)
            order = [*known, *(key for key in new if key.startswith(here))]
            found[changelog] = next(claims[key] for key in order if key in claims)
        return found

    def unclaimed(self, forms: Mapping[str, StoreForms]) -> Iterator[CoordinatorStreamMessage]:
        """Yield records that take such claims back."""
        for changelog, form in forms.items():
            yield wire.tombstone(_TYPE, _claim_of(changelog, form).key)

    def _claims(self) -> dict[str, StoreForms]:
        return read_all(self._stream, _TYPE, _claim)

    def schemas(self) -> dict[str, StoreSchemas]:
        """Return {changelog: by what its values were written}, of those that are known.

        WireError: a form is damaged; values in it would be read by another one.
        """
        readings = read_all(self._stream, _TYPE, _reading)
        announced = read_all(self._stream, _TYPE, _announced)
        later: dict[str, list[str]] = {}
        for key, message in sorted(self._stream.latest(_TYPE).items()):
            if key.startswith(_WRITER):
                later.setdefault(key.split(" ")[1], []).append(_form_of_values(message))
        return {
            changelog: StoreSchemas(
                forms,
                tuple(later.get(changelog, ())),
                readings.get(f"{_READER}{changelog}"),
                announced.get(f"{_ANNOUNCED}{changelog}", ""),
            )
            for changelog, forms in self.forms().items()
        }

    @staticmethod
    def writer_messages(
        changelog: str, form: str, first: StoreForms, *, is_new: bool
    ) -> Iterator[CoordinatorStreamMessage]:
        """Yield records of one more form of values.

        ``first``: the forms of the first container. ``is_new``: whether a release that compares
        these alone would read such values wrongly.
        """
        fingerprint = form.split(" ")[1]
        yield CoordinatorStreamMessage(_TYPE, f"{_WRITER}{changelog} {fingerprint}", {"msg": form})
        if is_new:
            values = first._replace(msg=f"{_EVOLVED}{first.msg}")._asdict()
            yield CoordinatorStreamMessage(_TYPE, f"{_CHANGELOG}{changelog}", values)

    @classmethod
    def first_messages(
        cls, changelog: str, first: StoreForms, reading: Reading
    ) -> Iterator[CoordinatorStreamMessage]:
        """Yield the records of a changelog all of whose values were written by ``reading``."""
        yield CoordinatorStreamMessage(_TYPE, f"{_CHANGELOG}{changelog}", first._asdict())
        if _brief(reading.msg) != _brief(first.msg):  # of a class: it has the fields
            yield from cls.writer_messages(changelog, reading.msg, first, is_new=False)
        yield cls.reading_message(changelog, reading)

    @staticmethod
    def reading_message(changelog: str, reading: Reading) -> CoordinatorStreamMessage:
        """Return the record of how containers read the changelog now."""
        return CoordinatorStreamMessage(_TYPE, f"{_READER}{changelog}", reading._asdict())

    @staticmethod
    def announcement(changelog: str, form: str) -> CoordinatorStreamMessage:
        """Return the record that admits values of ``form``, in brief, from containers."""
        return CoordinatorStreamMessage(_TYPE, f"{_ANNOUNCED}{changelog}", {"msg": form})

    def _tasks(self) -> dict[int, TaskName]:
        found = read_all(self._stream, _TYPE, _tasks_of)
        return {number: task for tasks in found.values() for number, task in tasks.items()}


def of_changelog(stream: CoordinatorStream, changelog: str) -> list[str]:
    """Return the keys of all records about the values of ``changelog``."""
    kinds = (_CHANGELOG, _WRITER, _READER, _ANNOUNCED)
    whole = {f"{kind}{changelog}" for kind in kinds}
    return [
        key
        for key in sorted(stream.latest(_TYPE))
        if key in whole or key.startswith(f"{_WRITER}{changelog} ")
    ]


def _brief(form: str) -> list[str]:
    return form.split(" ", 2)[:2]


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
    return StoreForms(key, msg.removeprefix(_EVOLVED))


def _claim_of(changelog: str, form: StoreForms) -> CoordinatorStreamMessage:
    key = f"{_CLAIM}{changelog} {form.key} {form.msg}"
    return CoordinatorStreamMessage(_TYPE, key, form._asdict())


def _claim(message: CoordinatorStreamMessage) -> StoreForms | None:
    if not message.key.startswith(_CLAIM):
        return None
    return StoreForms(message.value("key") or "", message.value("msg") or "")


def _reading(message: CoordinatorStreamMessage) -> Reading | None:
    if not message.key.startswith(_READER):
        return None
    key, msg = message.value("key"), message.value("msg")
    return Reading(key or "", msg or "", message.value("reader") or "")


def _announced(message: CoordinatorStreamMessage) -> str | None:
    return _form_of_values(message) if message.key.startswith(_ANNOUNCED) else None


def _form_of_values(message: CoordinatorStreamMessage) -> str:
    form = message.value("msg")
    if not form:
        raise WireError(f"{message.type} {message.key!r}: the form of values is missing")
    return form


class ChangelogPartitionManager:
    """Which partition of the changelogs belongs to which task: set-changelog.

    Samza's programs and the writer tool write such records too. Where one contradicts the job's own
    record of the partition, which has the task's state, it does not count.
    """

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream
        self._facts = StateFactManager(stream)

    def read(self) -> dict[TaskName, int]:
        """Return {task: changelog partition}.

        A record that cannot be read is not left out but stops the caller, unless the job's own
        record has the task.

        WireError: a record is damaged; going on would give its task another task's state.
        """
        own = self._facts.partitions()
        return {**self._recorded(own), **own}

    def contradictions(self) -> Iterator[ConfigError]:
        """Yield an error for each set-changelog record that contradicts the job's own record.

        The remedy of each is the record to write.
        """
        said = self._stream.latest(MessageType.SET_CHANGELOG)
        for task, partition in self._facts.partitions().items():
            message = said.get(task)
            text = None if message is None else message.value("Partition", "partition")
            if text != str(partition):
                rule = f"the state of task {task!r} is in changelog partition {partition}"
                remedy = repair(task, str(partition))
                yield ConfigError(f"{_CHANGELOG_TYPE} {task}", text, rule, remedy)

    def messages(
        self, partitions: Mapping[TaskName, int], standbys: Collection[TaskName] = ()
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Return records of the tasks of ``partitions`` whose partition the stream does not say.

        ``standbys``: those of them that keep copies of the state of others.
        """
        for error in self.contradictions():
            _LOG.warning("coordinator stream: a record is put right: %s", error)
        known = self._recorded(partitions)
        active = {task: n for task, n in partitions.items() if task not in standbys}
        return (
            *(
                wire.set_changelog(task, partition)
                for task, partition in sorted(partitions.items())
                if known.get(task) != partition
            ),
            *self._facts.partition_messages(active),
        )

    def write(self, partitions: Mapping[TaskName, int]) -> None:
        """Record the partition of every task of ``partitions``; those of other tasks stay."""
        self._stream.write(self.messages(partitions))

    def refuse(self, task: TaskName, partition: int | None) -> None:
        """Refuse a tool's record of ``task`` that contradicts its state; None deletes the record.

        ConfigError: the task has another partition, or another task has this one.
        """
        own, known = self._facts.partitions().get(task), self.read()
        has = known.get(task)
        modes = TaskModeManager(self._stream).read()
        known = {t: n for t, n in known.items() if modes.get(t) is not TaskMode.STANDBY}
        value = None if partition is None else str(partition)
        if partition is not None and partition == own:
            return  # the record is so already
        sharer = None if has is None else _other(known, task, has)
        if has not in {None, partition} and (own is not None or sharer is None):
            rule = f"task {task!r} has changelog partition {has}, and its state is there"
            remedy = "leave it, or begin from nothing by run-job --reset-state"
            raise ConfigError(_CHANGELOG_TYPE, value, rule, remedy)
        if partition is None:
            return
        other = _other(known, task, partition)
        if other is not None and has != partition:
            highest = max(known.values())
            unused = sorted(set(range(highest)) - set(known.values()))
            free = ", ".join(map(str, unused)) or highest + 1
            rule = f"task {other!r} has this changelog partition, and its state is there"
            raise ConfigError(_CHANGELOG_TYPE, value, rule, f"write a free one: {free}")

    def _recorded(self, but: Mapping[TaskName, int]) -> dict[TaskName, int]:
        found: dict[TaskName, int] = {}
        for name, message in self._stream.latest(MessageType.SET_CHANGELOG).items():
            task = TaskName(name)
            try:
                found[task] = wire.changelog_partition(message)
            except WireError:
                if task not in but:
                    raise
        return found


def repair(task: str, partition: str) -> str:
    """Return the command that gives ``task`` its changelog partition back."""
    return (
        f"write it back: coordinator-stream-writer --type={_CHANGELOG_TYPE} --key='{task}' "
        f"--value={partition}"
    )


def _other(known: Mapping[TaskName, int], task: TaskName, partition: int) -> TaskName | None:
    return next((t for t, n in sorted(known.items()) if n == partition and t != task), None)
