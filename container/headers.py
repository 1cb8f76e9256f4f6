"""Headers of one record, of which several may have one name. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HeaderPairs = Sequence[tuple[str, bytes | None]]
"""Headers of one record in their order; a name may be there more than once, a value be null."""


class Headers(dict[str, Any]):
    """The headers of a record: of each name the last value; ``header_pairs`` has all of them."""

    _all: HeaderPairs | None = None

    @classmethod
    def of(cls, pairs: HeaderPairs) -> Headers:
        """Return the headers that are ``pairs``."""
        found = cls(pairs)
        if len(found) != len(pairs):
            found._all = pairs
        return found

    def pairs(self) -> HeaderPairs:
        """Return all headers in their order; once a task has changed the dict, those in it."""
        if self._all is None or dict(self._all) != self:
            return list(self.items())
        return self._all


def header_pairs(headers: Mapping[str, bytes | None] | HeaderPairs) -> HeaderPairs:
    """Return all of ``headers``, in their order."""
    if isinstance(headers, Headers):
        return headers.pairs()
    return list(headers.items() if isinstance(headers, Mapping) else headers)
