"""A change of a list that several writers change at once: what goes, and what comes.

PURE. A list is one record, so that a writer that has not read another's record drops what that one
said. A change is applied to whatever the list has become, and twice is as good as once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ListChange(NamedTuple):
    """Items that a list loses, and those that it gets at its end."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @staticmethod
    def between(before: Sequence[str], after: Sequence[str]) -> ListChange:
        """Return what makes ``after`` of ``before``, but for the order."""
        return ListChange(
            tuple(item for item in after if item not in before),
            tuple(item for item in before if item not in after),
        )

    def of(self, items: Sequence[str]) -> tuple[str, ...]:
        """Return the items afterwards; what stays keeps its order."""
        kept = tuple(item for item in items if item not in self.removed)
        return (*kept, *(item for item in self.added if item not in kept))

    def then(self, later: ListChange) -> ListChange:
        """Return both as one; where they contradict each other, ``later`` is right."""
        return ListChange(
            later.of(self.added),
            (
                *(item for item in self.removed if item not in later.added),
                *(item for item in later.removed if item not in self.removed),
            ),
        )

    @property
    def undone(self) -> ListChange:
        """Return what takes it back."""
        return ListChange(self.removed, self.added)
