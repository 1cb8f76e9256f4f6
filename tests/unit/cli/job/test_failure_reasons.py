"""Why containers failed: what status, explain and run-job add to the lines that name a failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from own_records import put
from statuses import status_of
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.job import failure_reasons
from homeport.cli.job.failure_reasons import FailureReasons, with_reasons
from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.metadata.lifecycle import RetryManager, RetryState
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.shape import ShownStatus

P0 = ProcessorId("0")
REASONS = {Incarnation(P0, 1): r"division by zero of \1"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "0@1 on nm1: failed, exit code 1; the log of 0@1 is there",
            r"0@1 on nm1: failed, exit code 1: division by zero of \1; the log of 0@1 is there",
        ),
        (
            "0@1 on nm1: disk-full, exit code 75",
            r"0@1 on nm1: disk-full, exit code 75: division by zero of \1",
        ),
        ("10@1 on nm1: failed, exit code 1", "10@1 on nm1: failed, exit code 1"),
        ("0@11 on nm1: failed, exit code 1", "0@11 on nm1: failed, exit code 1"),
        ("the log of 0@1 is there", "the log of 0@1 is there"),
    ],
)
def test_a_reason_stands_behind_its_own_failure(text: str, shown: str) -> None:
    """Another processor or epoch, or another word of it, has none."""
    assert with_reasons(text, REASONS) == shown


def _failed(epoch: int) -> ShownStatus:
    story = f"0@{epoch} on nm1: failed, exit code 1"
    return status_of({"containers": [{"last_failure": story}, {"processor_id": "1"}]})


def test_the_stream_is_read_where_a_failure_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a job without failures, nor again for the same ones."""
    stream, opened = InMemoryCoordinatorStream(), []

    @contextmanager
    def open_stream(given: Config) -> Iterator[tuple[str, InMemoryCoordinatorStream]]:
        opened.append(given)
        yield "topic", stream

    monkeypatch.setattr(failure_reasons, "open_stream", open_stream)
    reasons = FailureReasons(Config({}))
    calm = status_of({"containers": [{"processor_id": "0"}]})
    assert (reasons.added_to(calm), len(opened)) == (calm, 0)
    for epoch in (1, 2):
        put(stream, RetryManager.message(P0, RetryState(1, 5, epoch, f"fault {epoch}")))
        for _ in range(2):
            first, second = reasons.added_to(_failed(epoch)).containers
            assert first.last_failure == f"0@{epoch} on nm1: failed, exit code 1: fault {epoch}"
            assert second.last_failure is None
        assert len(opened) == epoch


def test_a_status_needs_no_stream(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While Kafka is away failures have no reasons; a look at it takes seconds, so few are made."""
    stream, opened, now_s, is_away = InMemoryCoordinatorStream(), [], [100.0], [True]
    put(stream, RetryManager.message(P0, RetryState(1, 5, 1, "fault")))

    @contextmanager
    def open_stream(given: Config) -> Iterator[tuple[str, InMemoryCoordinatorStream]]:
        opened.append(given)
        if is_away[0]:
            raise UnavailableError("Kafka does not answer")
        yield "topic", stream

    monkeypatch.setattr(failure_reasons, "open_stream", open_stream)
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    reasons = FailureReasons(Config({}))
    for epoch in (1, 1, 2):
        assert reasons.added_to(_failed(epoch)) == _failed(epoch)
    assert len(opened) == 1
    line = "failures are shown without their reasons: Kafka does not answer\n"
    assert capsys.readouterr().err == line
    now_s[0], is_away[0] = 160.0, False
    for _ in range(2):
        first, _ = reasons.added_to(_failed(1)).containers
        assert first.last_failure == "0@1 on nm1: failed, exit code 1: fault"
    assert len(opened) == 2
