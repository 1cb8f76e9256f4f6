"""The outside judge of what a driver reports of recoveries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.scripts.test_check_history import History

WHOLE: dict[str, Any] = {"phases_ms": {"detect": 3, "restore": 97}, "total_ms": 100}


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Epoch 2 has come back for epoch 1."""
    history = History(tmp_path)
    history.start(100, ("0", 1))
    history.stop(400, ("0", 1))
    history.follow(500, 2)
    return history


@pytest.mark.parametrize(
    ("at", "stated", "is_sound"),
    [
        (600, WHOLE, True),
        (600, WHOLE | {"total_ms": 99}, False),
        (600, WHOLE | {"phases_ms": {"detect": -3, "restore": 103}}, False),
        (502, WHOLE, False),
    ],
)
def test_a_recovery_is_whole_and_over_when_its_container_has_fenced(
    history: History, at: int, stated: dict[str, Any], *, is_sound: bool
) -> None:
    """Its phases are the whole of it, none goes back, and the driver's report is not too early."""
    history.event(at, "driver", "recovered", ("0", 2), pid=1, **stated)
    assert history.broken() == ([] if is_sound else ["the phases of a recovery are the whole"])
