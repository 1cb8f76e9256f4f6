"""A transcript beside what is answered to its events now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def replayed(
    transcript: Path, played: Callable[[str], str], request: pytest.FixtureRequest
) -> tuple[str, str]:
    """(the file's text, the text with the answers of now); with ``--rewrite`` both are the second.

    Args:
        transcript: the file, which ``--rewrite`` writes again.
        played: makes the answers of a text again.
        request: of the test.
    """
    text = transcript.read_text(encoding="utf-8")
    answered = played(text)
    if request.config.getoption("--rewrite"):
        transcript.write_text(answered, encoding="utf-8")
        return answered, answered
    return text, answered
