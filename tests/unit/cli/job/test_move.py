"""``homeport move``: what is refused before anything is looked up."""

from __future__ import annotations

import pytest

from homeport.cli.job import move_command, placement_request
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.placement import CANCEL

FILE = "my.properties"


@pytest.mark.parametrize(
    ("host", "options"),
    [
        (None, {}),
        ("nm2", {"cancel": True}),
        (None, {"cancel": True, "warm": True}),
        (None, {"cancel": True, "expiry_ms": 5}),
    ],
)
def test_a_move_has_a_host_or_is_a_cancel(host: str | None, options: dict[str, bool]) -> None:
    """One of the two; a cancel has nothing else to say."""
    with pytest.raises(ConfigError, match="give a host, or --cancel alone"):
        move_command.move(processor="0", host=host, config_path=FILE, **options)  # type: ignore[arg-type] # by name


def test_a_cancel_is_a_request_without_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of the host stands a word of its own."""
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(move_command, "loaded", lambda *_: None)
    monkeypatch.setattr(
        placement_request,
        "ask",
        lambda _, processor, destination, **__: asked.append((processor, destination)),
    )
    move_command.move(processor="0", host=None, config_path=FILE, cancel=True)
    move_command.move(processor="0", host="ANY", config_path=FILE)
    assert asked == [("0", CANCEL), ("0", "ANY_HOST")]
