"""Lists in one record, which several writers change at once: no change is lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import ListKey
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.configuration import ConfigManager, change_list
from homeport.job_coordinator.model.list_change import ListChange

KEY = keys.DRAINED_HOSTS
TOKENS = keys.JOB_COORDINATOR_OPERATE_TOKENS
DIGEST = "0" * 63
MARKS = map(str, itertools.count())

Log = list[tuple[bytes, bytes | None]]


class Racer:
    """A writer of its own view of one log, whose steps a test puts between those of others."""

    def __init__(self, log: Log, change: ListChange, key: ListKey = KEY) -> None:
        self.stream = InMemoryCoordinatorStream("tool", log)
        self.change = change
        self.key = key
        self.before_write: Callable[[], object] = lambda: None
        self.before_check: Callable[[], object] = lambda: None
        self._reads = 0

    def put(self, record: CoordinatorStreamMessage) -> None:
        """The record is in the log; others write just before it, and just behind it."""
        self.key.check(Config({self.key.name: record.value("value") or ""}), self.key.name)
        self.before_write()
        self.stream.write([record])
        self.before_check()

    def run(self) -> bool:
        """See ``change_list``."""
        return change_list(self.stream, self.key, lambda _: self.change, self.put, next(MARKS))


def items(log: Log, key: ListKey = KEY) -> tuple[str, ...]:
    """What a reader of the log sees."""
    stream = InMemoryCoordinatorStream("reader", log)
    stream.catch_up()
    return key.read(ConfigManager(stream).read())


def started(*hosts: str) -> Log:
    """A log that has these hosts."""
    log: Log = []
    if hosts:
        stream = InMemoryCoordinatorStream("tool", log)
        stream.write([wire.set_config(KEY.name, ",".join(hosts))])
    return log


def once(call: Callable[[], object]) -> Callable[[], object]:
    """Runs ``call``, the first time that it is called."""
    calls = [call]
    return lambda: calls.pop()() if calls else None


@pytest.mark.parametrize("at", ["before_write", "before_check"])
@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        (ListChange(("nm1",)), ListChange(("nm2",)), {"nm0", "nm1", "nm2"}),
        (ListChange(("nm1",)), ListChange((), ("nm0",)), {"nm1"}),
        (ListChange((), ("nm0",)), ListChange(("nm2",)), {"nm2"}),
        (ListChange((), ("nm0",)), ListChange((), ("nm0",)), set()),
        (ListChange(("nm1",)), ListChange(("nm1",)), {"nm0", "nm1"}),
    ],
)
def test_two_writers_at_once_lose_nothing(
    at: str, first: ListChange, second: ListChange, left: set[str]
) -> None:
    """Whether the other one comes between a look and its write, or before the look behind it."""
    log = started("nm0")
    racer = Racer(log, first)
    setattr(racer, at, once(Racer(log, second).run))
    assert racer.run()
    assert set(items(log)) == left


def _interleavings(*left: int) -> Iterator[tuple[int, ...]]:
    """All orders in which each writer has so many steps."""
    if not any(left):
        yield ()
    for number in range(len(left)):
        if left[number]:
            rest = [count - (i == number) for i, count in enumerate(left)]
            yield from ((number, *order) for order in _interleavings(*rest))


@pytest.mark.parametrize(
    "changes",
    [
        [ListChange(("a",)), ListChange((), ("x",)), ListChange(("c",), ("y",))],
        [ListChange(("a",)), ListChange(("b",))],
        [ListChange((), ("x",)), ListChange((), ("y",))],
        [ListChange((), ("x",)), ListChange(("a",), ("x",))],
        [ListChange(("a",)), ListChange(("a",)), ListChange(("b",))],
    ],
)
def test_writers_in_every_order_lose_nothing(changes: list[ListChange]) -> None:
    """Each step of a writer is its look, its write, or its look behind that; all orders of them."""
    expected = {"x", "y"}
    for change in changes:
        expected = set(change.of(tuple(expected)))
    orders = 0
    for order in _interleavings(*[3] * len(changes)):
        log = started("x", "y")
        writers = [_steps(log, change) for change in changes]
        running = list(order)
        while running:
            number = running.pop(0)
            # A writer that has to write again goes on when its turn comes, at last at the end.
            if next(writers[number], None) is not None and number not in running:
                running.append(number)
        assert set(items(log)) == expected, order
        orders += 1
    assert orders == {2: 20, 3: 1680}[len(changes)]


def test_a_record_of_another_program_is_taken_for_the_change_that_it_makes() -> None:
    """Samza's tool says no change; a deletion brings back what the file has."""
    log = started("x", "y")
    samza = InMemoryCoordinatorStream("samza", log)
    racer = Racer(log, ListChange(("a",)))
    racer.before_write = once(lambda: samza.write([wire.set_config(KEY.name, "y,z")]))
    assert racer.run()
    assert set(items(log)) == {"a", "y", "z"}
    racer = Racer(log, ListChange(("b",)))
    tombstone = wire.tombstone(MessageType.SET_CONFIG, KEY.name)
    racer.before_write = once(lambda: samza.write([tombstone]))
    assert racer.run()
    assert items(log) == ("b",)


def _steps(log: Log, change: ListChange) -> Iterator[str]:
    """The steps of ``change_list`` by a writer whose stream stands still between them."""
    stream = _Stepping(log)
    work = stream.begin(change)
    yield from work


class _Stepping(InMemoryCoordinatorStream):
    """A stream on which ``change_list`` runs in a thread of steps: greenlets without greenlets."""

    def __init__(self, log: Log) -> None:
        super().__init__("tool", log)

    def begin(self, change: ListChange) -> Iterator[str]:
        """Yield before each look and each write, and run the rest of the call behind it."""
        import threading  # noqa: PLC0415 - of this one test

        turn, done = threading.Semaphore(0), threading.Semaphore(0)
        words: list[str] = []

        def stop(what: str) -> None:
            words.append(what)
            done.release()
            turn.acquire()

        def put(record: CoordinatorStreamMessage) -> None:
            stop("write")
            self.write([record])
            stop("check")

        def run() -> None:
            turn.acquire()
            try:
                change_list(self, KEY, lambda _: change, put, next(MARKS))
            finally:
                words.append("")
                done.release()

        thread = threading.Thread(target=run)
        thread.start()
        while True:
            turn.release()
            done.acquire()
            if not words[-1]:
                thread.join()
                return
            yield words[-1]


def test_a_list_that_breaks_a_rule_for_the_others_sake_is_without_the_change() -> None:
    """Two tokens of one name are valid at once; the one that was there first stays."""
    log: Log = []
    stream = InMemoryCoordinatorStream("tool", log)
    stream.write([wire.set_config(TOKENS.name, f"ada:{DIGEST}1")])
    racer = Racer(log, ListChange((f"ada:{DIGEST}3",)), TOKENS)
    racer.before_write = once(Racer(log, ListChange((f"ada:{DIGEST}2",)), TOKENS).run)
    with pytest.raises(ConfigError, match="3 tokens have this name"):
        racer.run()
    assert items(log, TOKENS) == (f"ada:{DIGEST}1", f"ada:{DIGEST}2")
    with pytest.raises(ConfigError, match="3 tokens have this name"):
        Racer(log, ListChange((f"ada:{DIGEST}3",)), TOKENS).run()
    assert items(log, TOKENS) == (f"ada:{DIGEST}1", f"ada:{DIGEST}2")


def test_a_list_that_others_change_all_the_time_is_given_up() -> None:
    """With one line; nothing of theirs is lost until then."""
    log = started()
    racer = Racer(log, ListChange(("mine",)))
    numbers = itertools.count()
    racer.before_write = lambda: Racer(log, ListChange((f"nm{next(numbers)}",))).run()
    with pytest.raises(UnavailableError, match="give the command again"):
        racer.run()
    assert next(numbers) == 10


def test_what_changes_nothing_is_not_written() -> None:
    """A host that is drained already, or is none of them."""
    log = started("nm1")
    assert not Racer(log, ListChange(("nm1",))).run()
    assert not Racer(log, ListChange((), ("nm2",))).run()
    assert len(log) == 1


def test_the_files_list_is_in_force_until_there_is_a_record() -> None:
    """And does not come back with the last item that goes."""
    file = Config({KEY.name: "nm2,nm1"})
    log: Log = []
    stream = InMemoryCoordinatorStream("tool", log)

    def put(record: CoordinatorStreamMessage) -> None:
        stream.write([record])

    assert change_list(stream, KEY, lambda _: ListChange((), ("nm1",)), put, next(MARKS), file)
    assert items(log) == ("nm2",)
    assert change_list(stream, KEY, lambda _: ListChange((), ("nm2",)), put, next(MARKS), file)
    assert items(log) == ()
    assert not change_list(stream, KEY, lambda _: ListChange((), ("nm1",)), put, next(MARKS), file)


NAMES = st.lists(st.sampled_from("abcd"), unique=True, max_size=4).map(tuple)
CHANGES = st.builds(ListChange, NAMES, NAMES).map(
    lambda c: ListChange(c.added, tuple(i for i in c.removed if i not in c.added))
)


@given(NAMES, CHANGES, CHANGES)
def test_changes_follow_each_other(
    before: tuple[str, ...], one: ListChange, two: ListChange
) -> None:
    """Two as one; twice as once; and what lies between two lists makes one of the other."""
    assert set(one.then(two).of(before)) == set(two.of(one.of(before)))
    assert one.of(one.of(before)) == one.of(before)
    after = two.of(before)
    assert set(ListChange.between(before, after).of(before)) == set(after)
    assert one.undone.undone == one
