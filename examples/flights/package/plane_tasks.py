"""The same job without a pipeline: as a StreamTask, and as a BatchTask over typed values."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from plane_summary import NOTHING, PlaneSummary, send
from reference_data import ReferenceData

from homeport import IncomingMessage, StreamTask, TaskContext

LOG = logging.getLogger("flights")


class PlaneSummaryOfValues(PlaneSummary):
    """``PlaneSummary`` on the input itself, whose serde has made columns of the values."""

    def process_batch(self, table: pa.Table, context: TaskContext) -> None:
        """Adds the batch's flights to the summaries of their planes."""
        values = table["value"]
        columns = {field.name: pc.struct_field(values, field.name) for field in values.type}
        for name in ("partition", "offset"):
            columns[name] = table[name]
        super().process_batch(pa.table(columns), context)


class PlaneByPlane(StreamTask):
    """One flight at a time: each one's plane has its summary in the store, and sends it.

    Flights without a tail number are logged, counted per partition, and left out.
    """

    def init(self, context: TaskContext) -> None:
        """Takes the stores."""
        self._summaries = context.store("summaries")
        self._skipped = context.store("skipped")
        self._reference = ReferenceData(context)

    def process(self, message: IncomingMessage, context: TaskContext) -> None:
        """Adds one flight to the summary of its plane."""
        flight: dict[str, Any] = message.value
        tail_number = flight["tailnum"]
        if tail_number is None:
            LOG.info("flight skipped: partition %d offset %d", message.partition, message.offset)
            key = f"partition-{message.partition}"
            self._skipped.put(key, (self._skipped.get(key) or 0) + 1)
            return
        summary = dict(self._summaries.get(tail_number) or NOTHING)
        summary["flights"] += 1
        summary["dep_delay_min"] += flight["dep_delay"] or 0
        if flight["dep_time"] is None:
            summary["cancelled"] += 1
        else:
            summary["miles"] += flight["distance"]
            summary["last_airport"] = flight["dest"]
        summary["carrier"] = flight["carrier"]
        self._summaries.put(tail_number, summary)
        described = self._reference.described_one(tail_number, summary, message.offset)
        send(context, tail_number, described)
