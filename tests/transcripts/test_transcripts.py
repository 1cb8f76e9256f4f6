"""Whole flows of HA-YARN, STANDBY and HA-STANDALONE, and of upgrades, as readable texts.

After a change that was meant, ``python -m pytest tests/transcripts --rewrite`` writes the answers
again; the difference is then reviewed like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.transcripts import script
from tests.transcripts.standalone import script as standalone_script
from tests.transcripts.upgrade import script as upgrade_script

Played = Callable[[str], str]
PLAYED: Mapping[str, Played] = {
    "": script.played,
    "standalone": standalone_script.played,
    "upgrade": upgrade_script.played,
}
"""{folder below this one: what makes the answers of its transcripts again}."""
HERE = Path(__file__).parent
TRANSCRIPTS = [
    (file, folder) for folder in PLAYED for file in sorted((HERE / folder).glob("*.txt"))
]


@pytest.mark.parametrize(
    ("transcript", "folder"), TRANSCRIPTS, ids=lambda value: getattr(value, "stem", value)
)
def test_the_answers_are_those_of_the_transcript(
    transcript: Path, folder: str, request: pytest.FixtureRequest
) -> None:
    """Line for line; with ``--rewrite`` the file is what is answered."""
    text = transcript.read_text(encoding="utf-8")
    answered = PLAYED[folder](text)
    if request.config.getoption("--rewrite"):
        transcript.write_text(answered, encoding="utf-8")
        text = answered
    assert text == answered


def test_a_difference_is_seen() -> None:
    """An answer that was altered, or is missing, is made good by playing it again."""
    text = TRANSCRIPTS[0][0].read_text(encoding="utf-8")
    answers = [line for line in text.splitlines() if line.startswith("  ")]
    assert script.played(text.replace(answers[-1], "  nothing follows")) == text
    assert script.played("\n".join(x for x in text.splitlines() if not x.startswith("  "))) == text


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        ("", "launcher r1"),
        ("", "model 1: 0 on a"),
        ("", "time is over: tea:1"),
        ("standalone", "registered x"),
        ("standalone", "plan 1: p"),
        ("standalone", "time is over: tea"),
        ("upgrade", "0-0 restarts"),
        ("upgrade", "1 checks in"),
        ("upgrade", "tea"),
    ],
)
def test_a_line_that_describes_no_event_is_an_error(folder: str, line: str) -> None:
    """With its number; only what the language knows, and what can happen, is played."""
    begun = "> begin 0-0 0\n" if folder == "upgrade" else "\n"
    with pytest.raises(ValueError, match="line 2: "):
        PLAYED[folder](f"{begun}> {line}")


def test_every_transcript_quotes_its_document() -> None:
    """Its first lines say what it shows; where a document has the flow, a line is its words."""
    assert {folder for _, folder in TRANSCRIPTS} == set(PLAYED)
    texts = {file.name: (file.read_text(encoding="utf-8"), folder) for file, folder in TRANSCRIPTS}
    silent = [
        name
        for name, (text, folder) in texts.items()
        if not text.startswith("# ") or ("\n| " not in text and folder != "upgrade")
    ]
    assert silent == []
