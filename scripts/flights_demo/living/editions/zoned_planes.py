"""The first edition: a summary is sent with the time zone of the last airport, once that is known.

The store ``zones`` comes to the job while it runs.
"""

from __future__ import annotations

from plane_summary import PlaneSummary

from homeport import ReadableStore, TaskContext


class ZonedPlanes(PlaneSummary):
    """``PlaneSummary``; where the job has the store ``zones``, outputs have a ``zone``."""

    def init(self, context: TaskContext) -> None:
        """Take the stores."""
        super().init(context)
        self._zones: ReadableStore | None = None
        if "stores.zones.factory" in context.config:
            self._zones = context.store("zones")

    def end_transaction(self, context: TaskContext) -> None:
        """Send each summary that this transaction changed."""
        if self._zones is not None:
            for summary in self._described.values():
                airport = summary["last_airport"]
                summary["zone"] = None if airport is None else self._zones.get(airport)
        super().end_transaction(context)
