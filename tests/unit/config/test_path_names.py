"""Folders named for what users choose: one path part each, no two alike."""

from __future__ import annotations

import pytest

from homeport.config.errors import StoreError
from homeport.config.path_names import job_folder, path_part


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("plane summary", "plane summary"),
        ("a/b", "a%2Fb"),
        ("50%", "50%25"),
        ("a\nb", "a%0Ab"),
        ("", "%00"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("...", "..."),
    ],
)
def test_any_text_becomes_one_path_part(text: str, part: str) -> None:
    """Harmless names stay; what leads elsewhere, or is no name, is escaped."""
    assert path_part(text) == part


def test_a_name_that_no_file_system_takes_is_refused() -> None:
    """Before anything is made, with the name in the message."""
    with pytest.raises(StoreError, match="longer than the 200 bytes of a path part"):
        path_part("x" * 201)


def test_two_jobs_never_share_a_folder() -> None:
    """A hyphen of the id is escaped (safety K3)."""
    assert job_folder("a", "1-0") == "a-1%2D0"
    assert job_folder("a-1", "0") == "a-1-0"
