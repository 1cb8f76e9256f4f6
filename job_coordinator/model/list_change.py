"""A change of a list that several writers change: the items that it removes and adds.

PURE. A list is one record: a writer that has not read another one's record overwrites its change.
So a change is applied to what the list has become; to apply it twice is the same as once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ListChange(NamedTuple):
    """The items that a list loses, and those that it gets at its end."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @staticmethod
    def between(before: Sequence[str], after: Sequence[str]) -> ListChange:
        """Return the change from ``before`` to ``after``, apart from the order of items."""
        return ListChange(
            tuple(item for item in after if item not in before),
            tuple(item for item in before if item not in after),
        )

    def of(self, items: Sequence[str]) -> tuple[str, ...]:
        """Return the items after the change; those that stay keep their order."""
        kept = tuple(item for item in items if item not in self.removed)
        return (*kept, *(item for item in self.added if item not in kept))

    def then(self, later: ListChange) -> ListChange:
        """Return both changes as one; where they contradict each other, ``later`` counts."""
        return ListChange(
            later.of(self.added),
            (
                *(item for item in self.removed if item not in later.added),
                *(item for item in later.removed if item not in self.removed),
            ),
        )

    @property
    def undone(self) -> ListChange:
        """Return the change that takes this one back."""
        return ListChange(self.removed, self.added)
