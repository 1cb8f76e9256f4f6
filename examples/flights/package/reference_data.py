"""Planes, airports and airlines: what the job keeps of each, and what a summary gets from them.

Each is an adjunct store, which a stream fills; the job only reads it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from homeport import (
    IncomingMessage,
    KeyValueExtractor,
    KeyValueExtractorFactory,
    ReadableStore,
    TaskContext,
)

LOG = logging.getLogger("flights")
EDITION = 1
"""Of this package: ``scripts/demo --moves`` upgrades the running job to a copy that has another."""
Summary = dict[str, Any]
_UNKNOWN = {"manufacturer": None, "model": None}


class PlaneTypes(KeyValueExtractorFactory):
    """Of the nine columns of a plane the store keeps two."""

    def get_key_value_extractor(self, config: Mapping[str, str]) -> KeyValueExtractor:  # noqa: ARG002 - none of it matters
        """As its base."""
        return _PlaneType()


class _PlaneType(KeyValueExtractor):
    def get_key(self, message: IncomingMessage) -> Any:  # noqa: ANN401 - as its base
        return message.key

    def get_value(self, message: IncomingMessage) -> Any:  # noqa: ANN401 - as its base
        plane = message.value
        return None if plane is None else {name: plane[name] for name in _UNKNOWN}


class AirportNames(KeyValueExtractorFactory):
    """Of the eight columns of an airport the store keeps its name."""

    def get_key_value_extractor(self, config: Mapping[str, str]) -> KeyValueExtractor:  # noqa: ARG002 - none of it matters
        """As its base."""
        return _AirportName()


class _AirportName(KeyValueExtractor):
    def get_key(self, message: IncomingMessage) -> Any:  # noqa: ANN401 - as its base
        return message.key

    def get_value(self, message: IncomingMessage) -> Any:  # noqa: ANN401 - as its base
        return None if message.value is None else message.value["name"]


class ReferenceData:
    """Adds names to summaries, as the stores have them in the batch of the call."""

    def __init__(self, context: TaskContext) -> None:
        """Takes the stores ``planes``, ``airports`` and ``airlines``."""
        LOG.info("the package has edition %d", EDITION)
        self._planes: ReadableStore = context.store("planes")
        self._airports: ReadableStore = context.store("airports")
        self._airlines: ReadableStore = context.store("airlines")

    def described(self, summaries: Mapping[str, Summary], batch: int | None) -> dict[str, Summary]:
        """Each summary with what the stores know of it.

        Shapes: ``summaries`` {tail number: summary}; ``batch``: the first offset of the batch.
        """
        planes = self._planes.get_all(summaries)
        airports = _names(self._airports, (s["last_airport"] for s in summaries.values()))
        airlines = _names(self._airlines, (s["carrier"] for s in summaries.values()))
        return {
            tail_number: {
                **summary,
                **planes.get(tail_number, _UNKNOWN),
                "last_airport_name": airports.get(summary["last_airport"]),
                "airline": airlines[summary["carrier"]],
                "batch": batch,
            }
            for tail_number, summary in summaries.items()
        }

    def described_one(self, tail_number: str, summary: Summary, offset: int) -> Summary:
        """The same of one summary, to which the flight at ``offset`` was added."""
        airport = summary["last_airport"]
        return {
            **summary,
            **(self._planes.get(tail_number) or _UNKNOWN),
            "last_airport_name": None if airport is None else self._airports.get(airport),
            "airline": self._airlines.get(summary["carrier"]),
            "batch": offset,
        }


def _names(store: ReadableStore, codes: Iterable[str | None]) -> dict[str | None, str | None]:
    """{code: its name, None where the store has none}."""
    column = pa.array({code for code in codes if code is not None}, pa.string())
    return dict(zip(column.to_pylist(), store.get_arrow(column).to_pylist(), strict=True))
