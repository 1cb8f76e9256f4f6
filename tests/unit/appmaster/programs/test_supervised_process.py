"""A program that the supervisor starts: what it makes is its user's alone."""

from __future__ import annotations

import os
from pathlib import Path

from homeport.appmaster.programs.supervisor import Process


def test_what_a_program_makes_is_its_users_alone(tmp_path: Path) -> None:
    """Files of attempt, driver and keeper, and their sockets, whatever the supervisor's mask."""
    before = os.umask(0)
    try:
        process = Process(("/bin/sh", "-c", f"cd {tmp_path}; mkdir folder; touch folder/file"))
        process.popen.wait()
        process.close()
    finally:
        os.umask(before)
    paths = [tmp_path / name for name in ("folder", "folder/file")]
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o700, 0o600]
