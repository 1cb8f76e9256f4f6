"""Folders for tests of rights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from another_user import open_folder, unprivileged


@pytest.fixture
def another_users_folder() -> Iterator[Path]:
    """A folder that this process may look into, and no more, for the time of the test."""
    with open_folder() as folder:
        (folder / "theirs").mkdir()
        (folder / "theirs").chmod(0o555)
        with unprivileged():
            yield folder / "theirs"
        (folder / "theirs").chmod(0o755)
