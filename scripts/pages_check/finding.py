"""Finding: what is wrong with one page, where, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """One fault; its text is one line."""

    page: str
    line: int
    fault: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.fault}: {self.remedy}"
