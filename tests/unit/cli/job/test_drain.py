"""``homeport drain``: what is refused."""

from __future__ import annotations

from typing import cast

import pytest
from msgspec.structs import replace
from statuses import outlook_of

from homeport.cli.job import drain_command
from homeport.cli.job.drain_command import require_places
from homeport.cli.job.placement_request import Patience
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.status.shape import ShownStatus

NM1 = Host("nm1")


def test_all_must_have_a_place_or_it_is_forced(capsys: pytest.CaptureFixture[str]) -> None:
    """By what-if; what has none is named either way."""
    require_places(NM1, outlook_of(NM1), is_forced=False)
    answer = replace(outlook_of(NM1), unplaced=(ProcessorId("0"), ProcessorId("1")))
    rule = "the other hosts have no place for processor 0, 1"
    with pytest.raises(ConfigError, match=rule):
        require_places(NM1, answer, is_forced=False)
    require_places(NM1, answer, is_forced=True)
    assert rule in capsys.readouterr().err


class _Wait:
    """A job that never takes the key; its pauses are counted."""

    pauses = 0

    def __call__(self) -> None:
        self.pauses += 1

    def status(self) -> ShownStatus:
        """No host is drained."""
        return ShownStatus()


def test_a_key_that_the_job_does_not_take_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another operator may have taken the drain back at once."""
    looks = iter(range(0, 200_000, 20_000))
    monkeypatch.setattr(drain_command, "boot_ms", lambda: next(looks))
    wait = _Wait()
    with pytest.raises(UnavailableError, match=r"has not taken cluster-manager\.drained\.hosts"):
        drain_command._await_taken(NM1, cast("Patience", wait))
    assert wait.pauses == 3
