"""``homeport audit --history``: the files of a history, and those that may not be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from another_user import open_folder, unprivileged

from homeport.cli.job.audit_command import changes_in
from homeport.config.errors import ConfigError

LINE = json.dumps({"ts_ms": 1, "event": "audit", "what": "move"})


def test_changes_of_all_files_come_by_time(tmp_path: Path) -> None:
    """Other files of the folder are left alone."""
    (tmp_path / "b.jsonl").write_text(f"{LINE}\n")
    (tmp_path / "a.jsonl").write_text(LINE.replace("1", "0") + '\n{"event": "audit", "cut')
    (tmp_path / "trimmed-events-0").write_bytes(b"\xff")
    assert [change["at_ms"] for change in changes_in(tmp_path)] == [0, 1]


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029", "\x0b", "\x1c"])
def test_a_change_with_any_character_is_shown(tmp_path: Path, character: str) -> None:
    """The history writes what JSON need not escape as it is; a line ends with its line feed."""
    event = {"ts_ms": 1, "event": "audit", "what": f"config a{character}b"}
    (tmp_path / "a.jsonl").write_text(json.dumps(event, ensure_ascii=False) + "\n" + LINE)
    assert len(list(changes_in(tmp_path))) == 2


def test_what_is_no_folder_gives_one_line(tmp_path: Path) -> None:
    """Missing, or a file."""
    (tmp_path / "file").write_text("")
    for name in ("file", "missing"):
        with pytest.raises(ConfigError, match="it is no folder"):
            changes_in(tmp_path / name)


@pytest.mark.parametrize("closed", ["job-1", "job-1/.history", "job-1/.history/a.jsonl"])
def test_another_users_history_gives_one_line(closed: str) -> None:
    """It never reads as one without changes."""
    with open_folder() as base:
        folder = base / "job-1" / ".history"
        folder.mkdir(parents=True)
        (folder / "a.jsonl").write_text(LINE)
        (base / closed).chmod(0)
        with unprivileged(), pytest.raises(ConfigError, match="cannot be read: Permission denied"):
            changes_in(folder)
        (base / closed).chmod(0o700)
