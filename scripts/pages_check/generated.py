"""The generated pages: what they should say, whether they do, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, zip_longest
from pathlib import Path

from pages_check import allocator_phases, configuration_pages, figures_page, json_page, metrics_page


@dataclass(frozen=True, order=True)
class Finding:
    """One fault; its text is one line."""

    page: str
    line: int
    fault: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.fault}: {self.remedy}"


_REMEDY = "run scripts/pages --write"


def generated() -> Mapping[str, str]:
    """{path from the root: text} of every generated page."""
    return {
        **configuration_pages.pages(),
        allocator_phases.PAGE: allocator_phases.page(),
        metrics_page.PAGE: metrics_page.page(),
        json_page.PAGE: json_page.page(),
        **figures_page.pages(),
    }


def stale(wanted: Mapping[str, str], pages: Mapping[str, str]) -> Iterator[Finding]:
    """Generated pages that are missing or differ, and pages of no key declarations any more."""
    for page, text in wanted.items():
        if page not in pages:
            yield Finding(page, 1, "generated page is missing", _REMEDY)
        elif pages[page] != text:
            yield Finding(page, _first_difference(pages[page], text), "stale", _REMEDY)
    for page in pages:
        if page.startswith(f"{configuration_pages.FOLDER}/") and page not in wanted:
            yield Finding(page, 1, "no longer generated", "delete it")


def _first_difference(there: str, wanted: str) -> int:
    pairs = zip_longest(there.splitlines(), wanted.splitlines())
    return next((n for n, (a, b) in zip(count(1), pairs, strict=False) if a != b), 1)


def write(root: Path) -> None:
    """Every generated page, below ``root``."""
    for page, text in generated().items():
        (root / page).parent.mkdir(parents=True, exist_ok=True)
        (root / page).write_text(text, encoding="utf-8")
