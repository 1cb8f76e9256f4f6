"""Whole flows of HA-STANDALONE as one processor's machine lives them, beside the document's words.

``python -m pytest tests/transcripts --rewrite`` writes the answers again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.replay import replayed
from tests.transcripts.standalone.script import played

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda file: file.stem)
def test_the_machine_answers_as_the_transcript_says(
    transcript: Path, request: pytest.FixtureRequest
) -> None:
    """Line for line; with ``--rewrite`` the file is what the machine answers."""
    text, answered = replayed(transcript, played, request)
    assert text == answered


@pytest.mark.parametrize("line", ["registered x", "plan 1: p", "time is over: tea"])
def test_a_line_that_describes_no_event_is_an_error(line: str) -> None:
    """With its number."""
    with pytest.raises(ValueError, match="line 1: "):
        played(f"> {line}")


def test_there_are_transcripts_that_quote_the_document() -> None:
    """Each says first what it shows, and at least one line is the document's words."""
    texts = [file.read_text(encoding="utf-8") for file in TRANSCRIPTS]
    assert texts
    assert all(text.startswith("# ") and "\n| " in text for text in texts)
