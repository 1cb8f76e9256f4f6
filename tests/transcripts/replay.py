"""A transcript's lines: events that are played, their answers, and words for the reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable

PROMPT = "> "
_ANSWER = "  "


def replayed(text: str, answers_to: Callable[[str], Iterable[str]]) -> str:
    """Return the text with the answers to its events made again.

    Raises:
        ValueError: a line that describes no event; the message has its number.
    """
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(_ANSWER):
            continue
        lines.append(line)
        if line.startswith(PROMPT):
            try:
                lines += [_ANSWER + answer for answer in answers_to(line.removeprefix(PROMPT))]
            except (KeyError, ValueError) as error:
                raise ValueError(f"line {number}: {line}: {error}") from error
    return "\n".join(lines) + "\n"
