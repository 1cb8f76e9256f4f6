"""``homeport move``: what is refused before anything is looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.cli.job import move_command, placement_request
from homeport.cli.options import NamedJob
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.placement import CANCEL

JOB = NamedJob("my.properties", None)


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
        move_command.move(processor="0", host=host, job=JOB, **options)


def test_a_cancel_is_a_request_without_a_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the place of the host stands a word of its own."""
    asked: list[tuple[str, str]] = []
    file = tmp_path / "my.properties"
    file.write_text("job.name=j", encoding="utf-8")
    job = NamedJob(str(file), None)
    monkeypatch.setattr(
        placement_request,
        "ask",
        lambda _, processor, destination, **__: asked.append((processor, destination)),
    )
    move_command.move(processor="0", host=None, job=job, cancel=True)
    move_command.move(processor="0", host="ANY", job=job)
    assert asked == [("0", CANCEL), ("0", "ANY_HOST")]
