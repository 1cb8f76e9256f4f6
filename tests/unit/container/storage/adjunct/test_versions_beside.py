"""Versions on real RocksDB whose flushes, catalogues and removals go on beside the batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from homeport.config.errors import StoreError
from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.container.adjunct.steps import SWITCH_STEPS, AdjunctAction
from homeport.container.host.executors import complete
from homeport.container.storage.task_store import passed
from tests.unit.container.storage.adjunct.adjunct_hosts import NAMES, PLANES, Host, take

_FLUSH, _CATALOGUE, _SWITCH, _DROP = SWITCH_STEPS


class _Later:
    """Implements ``Executor``: a call is made when it is waited for, or by ``make``."""

    def __init__(self) -> None:
        self.calls: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.failure: StoreError | None = None

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        self.calls.append((Future(), self._fail if self.failure else function))
        return self.calls[-1][0]

    def _fail(self) -> None:
        assert self.failure is not None
        raise self.failure

    def wait(self, call: Future[Any], timeout_s: float) -> None:
        assert timeout_s > 0
        while not call.done():
            self.make()

    def make(self) -> None:
        """Make the oldest call."""
        complete(*self.calls.pop(0))

    def close(self) -> None:
        assert self.calls == []

    def is_over(self, limit_s: float) -> bool:
        assert limit_s >= 0
        return self.calls == []


class _Case:
    """One host, whose container runs. ``settle`` and ``version`` return the steps that ended."""

    def __init__(self, root: Path) -> None:
        planes = replace(PLANES, is_bootstrap=True, markers=VersionMarkers(header="version"))
        self.beside = _Later()
        self._host = Host(root, planes, partitions=1, beside=self.beside)
        self.start()

    def start(self) -> None:
        self.storage = self._host.start()
        self.entries = self.storage.entries("planes", NAMES[0])

    def version(self, first: int, value: bytes) -> list[AdjunctAction]:
        """Hand over one record and the end of its version, from offset ``first`` on."""
        take(self.storage, first, value, b"end")
        return self.settle()

    def settle(self) -> list[AdjunctAction]:
        ended: list[AdjunctAction] = []
        self.storage.switch_versions(lambda step: ended.append(step.action), passed)
        return ended

    @property
    def seen(self) -> bytes | None:
        return self.entries.get(b"k")

    @property
    def folders(self) -> list[str]:
        return sorted(path.name for path in self._host.directory.glob("v*"))


@pytest.fixture
def case(tmp_path: Path) -> Iterator[_Case]:
    """Its container is closed in the end."""
    found = _Case(tmp_path)
    yield found
    found.storage.close()


def test_a_version_is_shown_once_it_and_the_catalogue_are_on_the_disk(case: _Case) -> None:
    """No call for that is the loop's; the first one is waited for until then."""
    assert case.version(0, b"1") == case.settle() == []
    case.beside.make()
    assert case.settle() == [_FLUSH]
    awaited = "adjunct store planes/Partition_0: version 1 is not on the disk yet"
    assert (case.seen, case.storage.awaited()) == (None, {NAMES[0]: awaited})
    facts = next(facts for item, facts in case.storage.facts() if item.store.is_bounded)
    assert (facts.version, facts.records) == (None, 0)
    case.beside.make()
    assert case.settle() == [_CATALOGUE, _SWITCH]
    assert (case.seen, case.storage.awaited()) == (b"1", {})
    facts = next(facts for item, facts in case.storage.facts() if item.store.is_bounded)
    assert (facts.version, facts.records) == (1, 1)


def test_the_old_version_goes_beside_the_batches_and_its_scans_end(case: _Case) -> None:
    """What follows meanwhile waits for its turn."""
    case.version(0, b"1")
    for _ in (_FLUSH, _CATALOGUE):
        case.beside.make()
        case.settle()
    scan = case.entries.scan()
    assert next(scan) == (b"k", b"1")
    assert case.version(2, b"2") == case.version(4, b"3") == []
    case.beside.make()
    assert case.settle() == [_FLUSH]
    assert (case.seen, case.folders) == (b"1", ["v1", "v2", "v3"])
    case.beside.make()
    assert case.settle() == [_CATALOGUE, _SWITCH]
    assert (case.seen, list(scan), case.folders) == (b"2", [], ["v1", "v2", "v3"])
    case.beside.make()
    assert case.settle() == [_DROP]
    assert case.folders == ["v2", "v3"]


def test_what_is_waited_for_is_shown_and_a_start_finds_all_of_it(case: _Case) -> None:
    """A switch that waits, a flush of the store and its close wait for what goes on beside."""
    case.version(0, b"1")
    case.version(2, b"2")
    case.storage.switch_versions(passed, passed, waits=True)
    assert case.seen == b"2"
    case.version(4, b"3")
    assert case.storage.flush(passed, passed) == 1
    assert _FLUSH in case.settle()
    case.version(6, b"4")
    case.storage.close()
    case.start()
    while case.beside.calls:
        case.beside.make()
        case.settle()
    assert (case.seen, case.folders) == (b"4", ["v4"])


def test_a_flush_beside_the_batches_that_fails_ends_the_container(case: _Case) -> None:
    """With the error of the flush, at the next batch; no task has seen the version."""
    case.beside.failure = StoreError("no room is left")
    case.version(0, b"1")
    case.beside.make()
    with pytest.raises(StoreError, match="no room is left"):
        case.settle()
    assert case.seen is None
