"""Which folders ``homeport state restore`` takes for its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.cli.host.state_restore import MARK, claim
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig


def _job(name: str) -> JobConfig:
    return JobConfig.of(Config({"job.name": name, "job.default.system": "kafka"}))


def test_a_new_folder_is_taken_and_known_again(tmp_path: Path) -> None:
    """One that is empty too; what a restore has begun there is its own."""
    folder = tmp_path / "a" / "b"
    assert claim(folder, _job("mine")) is False
    (folder / "mine-1").mkdir()
    assert claim(folder, _job("mine")) is True
    assert claim(tmp_path / "a" / "c", _job("mine")) is False


def test_a_folder_with_anything_else_is_left_alone(tmp_path: Path) -> None:
    """Such as one that containers keep their state in, or another job's restore."""
    used = tmp_path / "used"
    (used / "mine-1" / "counts").mkdir(parents=True)
    with pytest.raises(ConfigError, match="not empty, and no restore of this job made it"):
        claim(used, _job("mine"))
    assert [entry.name for entry in used.iterdir()] == ["mine-1"]
    claim(tmp_path / "theirs", _job("theirs"))
    with pytest.raises(ConfigError, match="the restored state of another job"):
        claim(tmp_path / "theirs", _job("mine"))


def test_a_path_that_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    """A file, or a mark that is cut short."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="it cannot be used"):
        claim(tmp_path / "file", _job("mine"))
    (tmp_path / MARK).write_text('{"job.na')
    with pytest.raises(ConfigError, match="is damaged"):
        claim(tmp_path, _job("mine"))
