"""Which _Spark an incarnation takes from the one before it in its process."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from small_jobs import KEYS

from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.container.host.lease_memory import LeaseMemory, SpareKind
from homeport.container.incarnation import warm_up
from homeport.container.incarnation.warm_up import GettingReady
from homeport.container.spark.prepared import PipelineSettings
from homeport.container.spark.session import LocalSpark


@dataclass
class _Spark:
    """It may have died meanwhile."""

    lives: bool = True
    stops: int = 0

    def is_sound(self) -> bool:
        return self.lives

    def stop(self) -> None:
        self.stops += 1


def _settings(generation: int, **more: str) -> PipelineSettings:
    """Of an incarnation, which has a folder of its own."""
    found = PipelineSettings.of(
        Config({**KEYS, "task.pipeline.class": "m:f", **more}), Path(f"/w/spark-{generation}")
    )
    assert found is not None
    return found


def _kept(spark: _Spark) -> GettingReady:
    """What is left when generation 1 rests."""
    ready = GettingReady(LeaseMemory.endless())
    ready.stop()
    ready.keep(_settings(1), cast("LocalSpark", spark))
    return ready


def test_the_next_incarnation_takes_the_spark_once() -> None:
    """It is its own from then on: nothing here ends it."""
    spark = _Spark()
    ready = _kept(spark)
    assert cast("_Spark", ready.take(_settings(2))) is spark
    assert ready.take(_settings(3)) is None
    ready.stop()
    assert spark.stops == 0


def test_a_spark_that_is_of_no_use_ends() -> None:
    """It has died, is for another pipeline, or no incarnation wants it."""
    dead, other, unwanted = _Spark(lives=False), _Spark(), _Spark()
    assert _kept(dead).take(_settings(2)) is None
    assert _kept(other).take(_settings(2, **{"task.pipeline.class": "m:g"})) is None
    _kept(unwanted).stop()
    assert [spark.stops for spark in (dead, other, unwanted)] == [1, 1, 1]


class _Launcher:
    """Says whether a permit is near, and hears when all is done."""

    def __init__(self, *, is_permit_near: bool) -> None:
        self.is_permit_near = is_permit_near
        self.heard = threading.Event()

    @property
    def is_ready(self) -> bool:
        return self.heard.is_set()

    @is_ready.setter
    def is_ready(self, is_ready: bool) -> None:
        assert is_ready
        self.heard.set()


@pytest.mark.parametrize("niceness", [[10], []])
def test_a_process_gives_way_unless_its_permit_is_near(
    monkeypatch: pytest.MonkeyPatch, niceness: list[int]
) -> None:
    """A start would wait for the modules that a nice thread is importing."""
    found: list[int] = []
    monkeypatch.setattr("os.nice", found.append)
    monkeypatch.setattr(warm_up, "_import_all", lambda _kind: None)
    launcher = _Launcher(is_permit_near=not niceness)
    GettingReady(cast("LeaseMemory", launcher)).begin(SpareKind.PLAIN)
    assert launcher.heard.wait(60)
    assert found == niceness


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> queue.Queue[int]:
    """The rounds of each Spark that a process makes ready."""
    found: queue.Queue[int] = queue.Queue()

    def start(ready: GettingReady, over: threading.Event, rounds: int = 0) -> LocalSpark | None:
        found.put(rounds)
        ready.keep(_settings(1), cast("LocalSpark", _Spark()))
        over.set()
        return None

    monkeypatch.setattr(warm_up, "_import_all", lambda _kind: None)
    monkeypatch.setattr(GettingReady, "_start_spark", start)
    return found


def _threads_end() -> None:
    for thread in threading.enumerate():
        if thread.name in {"imports", "warm-up"}:
            thread.join(60)


def test_a_process_that_has_its_imports_makes_a_spark_when_one_is_wanted(
    started: queue.Queue[int],
) -> None:
    """An incarnation without tasks wants one, be it the first or after one that had tasks."""
    ready = GettingReady(LeaseMemory.endless())
    ready.begin(SpareKind.PLAIN)
    _threads_end()
    assert started.empty()
    for _ in range(2):
        ready.begin(SpareKind.WARM)
        assert started.get(timeout=60) == warm_up._ROUNDS
        _threads_end()
        assert ready.take(_settings(2)) is not None
        ready.stop()


class _Failed(_Spark):
    """Its pipeline has failed."""

    def is_ready(self) -> bool:
        return False

    def fault(self) -> BaseException:
        return HomeportError("no\nsuch column")


def test_a_process_whose_spark_fails_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In one line, and in the memory, so that its launcher does not wait for it."""
    spark = cast("LocalSpark", _Failed())
    monkeypatch.setattr(warm_up, "_import_all", lambda _kind: None)
    monkeypatch.setattr(warm_up, "_LOOK_S", 0.001)
    monkeypatch.setattr(GettingReady, "_start_spark", lambda *_: spark)
    memory = LeaseMemory.endless()
    GettingReady(memory).begin(SpareKind.WARM)
    _threads_end()
    assert (memory.has_failed, memory.is_ready) == (True, False)
    assert caplog.messages == ["no Spark is made ready: no such column"]


def test_a_process_makes_one_spark(started: queue.Queue[int]) -> None:
    """A kind that has begun does not begin again, nor does one beside a Spark that is kept."""
    ready = GettingReady(LeaseMemory.endless())
    for kind in (SpareKind.WARM, SpareKind.WARM, SpareKind.SPARK, SpareKind.NONE):
        ready.begin(kind)
    _threads_end()
    assert started.qsize() == 1
    ready.take(_settings(2))
    ready.keep(_settings(2), cast("LocalSpark", _Spark()))
    ready.begin(SpareKind.WARM)
    _threads_end()
    assert started.qsize() == 1
