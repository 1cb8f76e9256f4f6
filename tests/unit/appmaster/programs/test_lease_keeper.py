"""When the keeper ends its attempt: outranked, or both Kafka and the ResourceManager are silent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.lease.lease_table import RenewalGuard
from homeport.appmaster.programs import lease_keeper
from homeport.appmaster.programs.lease_keeper import look, watch
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.access.job_access import JobSecret
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage, set_config
from homeport.job_coordinator.metadata.epochs import AmEpoch, Rank, am_epoch_message

UNREACHED_MS = 5000
SECRET = JobSecret(b"secret")
LOOK_MS = 1000


@dataclass
class Outside:
    """What answers at each look in turn: letters of Kafka (K, or R for a rank) and the manager (m).

    ``asked``: how often the ResourceManager was. A digit: the generation of the job's token.
    """

    answers: Sequence[str]
    now_ms: int = 0
    asked: int = 0
    looked: int = 0
    guard: RenewalGuard = field(default_factory=lambda: RenewalGuard(4000))
    token: str = ""

    def look(self, *_: object) -> int:
        """A second passes with each."""
        self.now_ms += LOOK_MS
        found = self.answers[self.looked]
        self.looked += 1
        if "K" in found or "R" in found:
            self.guard.fetched_ms = self.now_ms
        self.guard.is_outranked = "R" in found
        return next((int(c) for c in found if c.isdigit()), 0)

    def setting(self, _key: str) -> str:
        """YARN's limit for a silent node is the shorter one."""
        return "1"

    def require_reachable(self) -> None:
        """UnavailableError where it does not answer now."""
        self.asked += 1
        if "m" not in self.answers[self.looked - 1]:
            raise UnavailableError("no answer")


def _watched(patch: pytest.MonkeyPatch, *answers: str) -> tuple[str, Outside]:
    outside = Outside(answers)
    patch.setattr(lease_keeper, "_WATCH_S", 0)
    patch.setattr(lease_keeper, "boot_ms", lambda: outside.now_ms)
    patch.setattr(lease_keeper, "look", outside.look)
    manager = SimpleNamespace(from_folder=lambda _: outside)
    patch.setattr(lease_keeper, "ResourceManagerRest", manager)
    container: Any = SimpleNamespace(folder=None, rank=None)
    stream: Any = None
    access = ServedAccess("token", SECRET)
    ended = asyncio.run(watch(container, stream, outside.guard, access, UNREACHED_MS))
    outside.token = access.token.decode()
    return ended, outside


@pytest.mark.parametrize(("answers", "asked"), [("KmKR", 1), ("m" * 12 + "K" * 12 + "R", 12)])
def test_an_answer_of_either_is_enough_and_the_manager_is_asked_while_kafka_is_silent(
    monkeypatch: pytest.MonkeyPatch, answers: str, asked: int
) -> None:
    """Either may be away for any time: the attempt is what the job comes back to."""
    why, outside = _watched(monkeypatch, *answers)
    assert why.startswith("a higher rank has taken over")
    assert outside.asked == asked


def test_the_jobs_token_is_exchanged_while_leases_are_renewed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By what the coordinator stream has; Kafka's silence takes nothing back."""
    _, outside = _watched(monkeypatch, "K", "K3", "m", "R")
    assert outside.token == SECRET.token(3)


@pytest.mark.parametrize(
    ("value", "generation"), [("7", 7), ("many", 0), ("-1", 0), ("", 0), ("9" * 400, 0)]
)
def test_the_generation_is_read_from_the_stream(value: str, generation: int) -> None:
    """Samza's tool writes any text, which ends no keeper: all containers would end without it."""
    stream = InMemoryCoordinatorStream()
    guard, rank = RenewalGuard(4000), Rank(1, "a", 1)
    assert look(stream, guard, rank) == 0
    stream.write([set_config(keys.JOB_COORDINATOR_ACCESS_GENERATION.name, value)])
    assert look(stream, guard, rank) == generation
    assert guard.fetched_ms


def test_the_attempt_ends_if_both_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """After what a container can live unreached, counted from the first look without an answer."""
    why, outside = _watched(monkeypatch, "K", *("" for _ in range(9)))
    assert why == (
        "neither Kafka nor the ResourceManager has answered for 5000 ms: this attempt is over"
    )
    assert outside.looked == 1 + 1 + UNREACHED_MS // LOOK_MS


class Stream(InMemoryCoordinatorStream):
    """A second passes while it is read; ``is_silent``: Kafka does not answer."""

    now_ms = 10_000
    is_silent = False

    def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
        """What was written since."""
        self.now_ms += LOOK_MS
        if self.is_silent:
            raise UnavailableError("no answer")
        return super().catch_up()


def test_a_look_finds_a_higher_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Safety L2; the finding has the time of the request to Kafka, not of its answer."""
    stream, guard, own = Stream(), RenewalGuard(4000), Rank(2, "application_1_0001", 1)
    monkeypatch.setattr(lease_keeper, "boot_ms", lambda: stream.now_ms)
    look(stream, guard, own)
    assert (guard.fetched_ms, guard.is_outranked) == (10_000, False)
    for attempt, is_outranked in ((1, False), (2, True)):
        stream.write([am_epoch_message(AmEpoch(replace(own, attempt=attempt), ()))])
        look(stream, guard, own)
        assert guard.is_outranked is is_outranked
    assert guard.fetched_ms == 12_000
    stream.is_silent = True
    look(stream, guard, own)
    assert (guard.fetched_ms, guard.is_outranked) == (12_000, True)
