"""``homeport drain``: what is refused."""

from __future__ import annotations

import pytest

from homeport.config.errors import ConfigError
from homeport.job_coordinator.cli.drain_command import require_places
from homeport.job_coordinator.model.ids import Host

NM1 = Host("nm1")


def test_all_must_have_a_place_or_it_is_forced(capsys: pytest.CaptureFixture[str]) -> None:
    """By what-if; what has none is named either way."""
    require_places(NM1, {"unplaced": [], "shortage": None}, is_forced=False)
    answer = {"unplaced": ["0", "1"], "shortage": None}
    rule = "the other hosts have no place for processor 0, 1"
    with pytest.raises(ConfigError, match=rule):
        require_places(NM1, answer, is_forced=False)
    require_places(NM1, answer, is_forced=True)
    assert rule in capsys.readouterr().err
