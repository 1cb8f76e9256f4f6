"""Traces: what a container reports of the stages of each transaction.

Off by default: the base class itself drops all that it gets.
"""

Span = tuple[float, float]
"""(began, ended), in seconds of the loop's clock."""


class Traces:
    """Gets the stages of transactions from the loop's thread."""

    def batch(self, fetched: Span, piped: Span | None, tasked: Span, rows: int) -> None:
        """Add one more micro-batch to the open transaction, with the times of its stages.

        ``piped``: None without a pipeline. A stage of a batch that was fetched ahead may end long
        before the next stage begins.
        """

    def ended(self) -> None:
        """Note that the open transaction is on its way, and open the next one."""

    def committed(self, sent: Span) -> None:
        """Note that the transaction on its way is committed; ``sent``: the time of its sending."""

    def dropped(self) -> None:
        """Drop the open transaction and the one on its way."""

    def close(self) -> None:
        """Hand over what was committed, as far as that takes a moment."""


NO_TRACES = Traces()
