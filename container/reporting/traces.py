"""Traces of transactions: what a traced container says of each, and what becomes of it.

Off by default: ``Traces`` itself does nothing with what it is given.
"""

from __future__ import annotations

Span = tuple[float, float]
"""(began, ended), in seconds of the loop's clock."""


class Traces:
    """Gets the stages of transactions from the loop's thread."""

    def batch(self, fetched: Span, piped: Span | None, tasked: Span, rows: int) -> None:
        """Add one more micro-batch to the open transaction, with the times of its stages.

        ``piped``: None without a pipeline. Of one that was fetched ahead, its stages may have
        ended long before the next began.
        """

    def ended(self) -> None:
        """Note that the open transaction is on its way; what comes is of the next one."""

    def committed(self, sent: Span) -> None:
        """Note that the transaction on its way is committed, and was sent in this time."""

    def dropped(self) -> None:
        """Drop the open transaction and the one on its way."""

    def close(self) -> None:
        """Hand over what was committed, as far as that takes a moment."""


NO_TRACES = Traces()
