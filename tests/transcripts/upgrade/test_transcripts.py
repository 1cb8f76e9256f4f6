"""Whole upgrades as the machine lives them, there and back.

``python -m pytest tests/transcripts --rewrite`` writes the answers again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.replay import replayed
from tests.transcripts.upgrade.script import played

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda file: file.stem)
def test_the_machine_answers_as_the_transcript_says(
    transcript: Path, request: pytest.FixtureRequest
) -> None:
    """Line for line; with ``--rewrite`` the file is what the machine answers."""
    text, answered = replayed(transcript, played, request)
    assert text == answered


@pytest.mark.parametrize("line", ["0-0 restarts", "1 checks in", "tea"])
def test_what_cannot_happen_is_an_error(line: str) -> None:
    """With its number."""
    with pytest.raises(ValueError, match="line 2: "):
        played(f"> begin 0-0 0\n> {line}")


def test_each_transcript_says_what_it_shows() -> None:
    """In its first line; and there are some."""
    assert TRANSCRIPTS
    assert all(file.read_text(encoding="utf-8").startswith("# ") for file in TRANSCRIPTS)
