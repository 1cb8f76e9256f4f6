"""Traces of transactions: what a traced container says of each, and what becomes of it.

Off by default: ``NO_TRACES`` does nothing with what it is given.
"""

from __future__ import annotations

from typing import Protocol


class Traces(Protocol):
    """Gets the stages of transactions from the loop's thread, in seconds of the loop's clock."""

    def batch(
        self,
        fetched: tuple[float, float],
        piped: tuple[float, float] | None,
        tasked: tuple[float, float],
        rows: int,
    ) -> None:
        """Add one more micro-batch to the open transaction: (began, ended) of each stage.

        ``piped``: None without a pipeline. Of one that was fetched ahead, its stages may have
        ended long before the next began.
        """

    def ended(self) -> None:
        """Note that the open transaction is on its way; what comes is of the next one."""

    def committed(self, sent: tuple[float, float]) -> None:
        """Note that the transaction on its way is committed, and was sent in this time."""

    def dropped(self) -> None:
        """Drop the open transaction and the one on its way."""

    def close(self) -> None:
        """Hand over what was committed, as far as that takes a moment."""


class NoTraces:
    """Nothing is traced."""

    def batch(
        self,
        fetched: tuple[float, float],
        piped: tuple[float, float] | None,
        tasked: tuple[float, float],
        rows: int,
    ) -> None:
        """Nothing."""

    def ended(self) -> None:
        """Nothing."""

    def committed(self, sent: tuple[float, float]) -> None:
        """Nothing."""

    def dropped(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


NO_TRACES: Traces = NoTraces()
