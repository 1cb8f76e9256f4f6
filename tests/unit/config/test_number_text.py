"""Numbers in texts; ``test_number_ranges`` has those of a configuration."""

from __future__ import annotations

from homeport.config.number_text import counted


def test_a_count_has_its_noun_in_the_singular_or_the_plural() -> None:
    """As in English: none is many."""
    assert [counted(n, "core") for n in (0, 1, 2)] == ["0 cores", "1 core", "2 cores"]
