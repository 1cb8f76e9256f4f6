"""How a running container learns of a newer configuration."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_jobs import KEYS, context_in, job_of

from homeport.config.errors import HomeportError, UnavailableError, WireError
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation import live_tuning
from homeport.container.incarnation.live_tuning import LiveTuning
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

KEY = "task.commit.ms"
OWN = 3


class _Case:
    """A container with JobModel ``OWN``; ``answers``: what the AM says, one per call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, memory: LeaseMemory) -> None:
        self.memory = memory
        self.stop = StopFlag()
        self.answers: list[Mapping[str, str] | HomeportError] = []
        self.history: list[tuple[str, dict[str, Any]]] = []
        self._threads: list[threading.Thread] = []
        monkeypatch.setattr(live_tuning, "_PAUSE_S", 0)
        permit = Permit(Incarnation(ProcessorId("0"), 4), OWN, ())
        context = context_in(
            folder,
            job_of({**KEYS, KEY: "1000"}),
            permit,
            self.stop,
            launcher=memory,
            coordinator=SimpleNamespace(config=self._fetch),
            history=lambda event, **fields: self.history.append((event, fields)),
        )
        self.tuning = LiveTuning(context)
        begin = threading.Thread.start

        def started(thread: threading.Thread) -> None:
            self._threads.append(thread)
            begin(thread)

        monkeypatch.setattr(threading.Thread, "start", started)

    @property
    def fetches(self) -> int:
        return len(self._threads)

    def _fetch(self) -> Mapping[str, str]:
        answer = self.answers.pop(0)
        if isinstance(answer, HomeportError):
            raise answer
        return answer

    def commit_ms(self) -> int:
        """What is in force at this turn; what this turn began to fetch is there afterwards."""
        found = self.tuning.latest().commit_ms
        for thread in self._threads:
            thread.join()
        return found


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Case:
    """A container before the first turn of its loop."""
    return _Case(monkeypatch, tmp_path, LeaseMemory.endless())


@pytest.mark.parametrize("version", [0, 1, OWN])
def test_nothing_is_fetched_without_a_newer_version(case: _Case, version: int) -> None:
    """0 is no version: the launcher has not had an answer yet."""
    case.memory.model_version = version
    assert [case.commit_ms(), case.commit_ms()] == [1000, 1000]
    assert case.fetches == 0


@pytest.mark.parametrize(
    ("answers", "commits_ms"),
    [
        ([{KEY: "200"}], [1000, 200, 200]),
        ([UnavailableError("away"), UnavailableError("away"), {KEY: "200"}], [1000, 200]),
        ([{KEY: "1000", "task.inputs": "kafka.other"}], [1000, 1000]),
    ],
    ids=["one key", "an AM that does not answer at first", "other keys"],
)
def test_a_newer_version_is_in_effect_at_the_turn_after_its_fetch(
    case: _Case, answers: list[Mapping[str, str] | HomeportError], commits_ms: list[int]
) -> None:
    """It is fetched once, and the history has it once; one that changes other keys is no news.

    The loop does not wait for the AM; the container goes on with its own values of other keys.
    """
    case.answers = answers
    case.memory.model_version = OWN + 1
    assert [case.commit_ms() for _ in commits_ms] == commits_ms
    assert case.fetches == 1
    news = [] if commits_ms[-1] == 1000 else [("retuned", OWN + 1, 200)]
    found = [(event, m["model_version"], m["commit_ms"]) for event, m in case.history]
    assert found == news


@pytest.mark.parametrize("answer", [WireError("nonsense"), {KEY: "never"}])
def test_an_unusable_value_changes_nothing(
    case: _Case, answer: Mapping[str, str] | HomeportError
) -> None:
    """The next version is fetched all the same."""
    case.answers = [answer, {KEY: "300"}]
    case.memory.model_version = OWN + 1
    assert [case.commit_ms(), case.commit_ms()] == [1000, 1000]
    case.memory.model_version = OWN + 2
    assert [case.commit_ms(), case.commit_ms()] == [1000, 300]


def test_a_container_that_stops_asks_no_more(case: _Case) -> None:
    """The thread ends without an answer."""
    case.stop.set()
    case.memory.model_version = OWN + 1
    assert [case.commit_ms(), case.commit_ms()] == [1000, 1000]
