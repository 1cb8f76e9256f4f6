"""Whole flows of HA-YARN and STANDBY as readable texts, beside the documents' words.

After a change that was meant, ``python -m pytest tests/transcripts --rewrite`` writes the answers
again; the difference is then reviewed like any other.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.replay import replayed
from tests.transcripts.script import played

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda file: file.stem)
def test_the_allocator_answers_as_the_transcript_says(
    transcript: Path, request: pytest.FixtureRequest
) -> None:
    """Line for line; with ``--rewrite`` the file is what the allocator answers."""
    text, answered = replayed(transcript, played, request)
    assert text == answered


def test_a_difference_is_seen() -> None:
    """An answer that was altered, or is missing, is made good by playing it again."""
    (transcript, *_) = TRANSCRIPTS
    text = transcript.read_text(encoding="utf-8")
    answers = [line for line in text.splitlines() if line.startswith("  ")]
    assert played(text.replace(answers[-1], "  nothing follows")) == text
    assert played("\n".join(x for x in text.splitlines() if not x.startswith("  "))) == text


@pytest.mark.parametrize("line", ["launcher r1", "model 1: 0 on a", "time is over: tea:1"])
def test_a_line_that_describes_no_event_is_an_error(line: str) -> None:
    """With its number; only what the language knows is played."""
    with pytest.raises(ValueError, match="line 1: "):
        played(f"> {line}")


def test_every_transcript_quotes_its_document() -> None:
    """Its first lines say what it shows, and at least one line is the document's words."""
    silent = [
        file.name
        for file in TRANSCRIPTS
        if not file.read_text(encoding="utf-8").startswith("# ")
        or "\n| " not in file.read_text(encoding="utf-8")
    ]
    assert TRANSCRIPTS
    assert silent == []
