"""What the mutants of every search have in common: a rule is taken out, and the search finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.exhaustive.search import FoundError

Patch = pytest.MonkeyPatch
Announce = Callable[[str], None]


@dataclass(frozen=True)
class Mutant:
    """``patch`` takes a rule out; ``verdict`` is a regular expression of what is then found."""

    patch: Callable[[Patch], None]
    verdict: str

    def __str__(self) -> str:
        return self.patch.__name__

    def search(self) -> None:
        """All worlds are safe, and can all go well.

        Raises:
            FoundError: one is not as it must be.
        """
        raise NotImplementedError

    def require_found(
        self, monkeypatch: Patch, request: pytest.FixtureRequest, announce: Announce
    ) -> None:
        """Without the rule the search finds the verdict; ``pytest -v`` announces the way to it."""
        self.patch(monkeypatch)
        with pytest.raises(FoundError, match=self.verdict) as found:
            self.search()
        if request.config.get_verbosity() > 0:
            announce(f"{self.patch.__doc__}\n{found.value}")
