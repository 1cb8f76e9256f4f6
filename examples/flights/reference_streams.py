"""Writes planes, airports and airlines to the topics of their names, for ``producer.py``.

Planes and airports are JSON, keyed by tail number and code; an airline's record is its name. The
airlines are a data set with versions: each edition of the names stands between two markers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic
from data import airline_names, read_airports, read_planes

PLANES, AIRPORTS, AIRLINES = "planes", "airports", "airlines"
_HEADER = "version"
_LIMIT_S = 120


class Row(NamedTuple):
    """One record, as it is sent."""

    topic: str
    key: str | None
    value: str | None
    headers: dict[str, str] = {}  # noqa: RUF012 - nothing changes it


def reference_topics(partitions: int) -> list[NewTopic]:
    """Planes have the partitions of flights; compaction would mix the airlines' versions."""
    return [
        NewTopic(PLANES, partitions, 1, config={"cleanup.policy": "compact"}),
        NewTopic(AIRPORTS, 1, 1, config={"cleanup.policy": "compact"}),
        NewTopic(AIRLINES, 1, 1, config={"cleanup.policy": "delete"}),
    ]


def plane_records() -> list[Row]:
    """One for each plane of which more is known than the tail number."""
    return [Row(PLANES, plane["tailnum"], _json(plane)) for plane in read_planes()]


def airport_records() -> list[Row]:
    """One for each airport."""
    return [Row(AIRPORTS, airport["faa"], _json(airport)) for airport in read_airports()]


def airline_records(edition: int) -> list[Row]:
    """A version of the airlines, from its beginning to its end."""
    begin, end = (Row(AIRLINES, None, None, {_HEADER: word}) for word in ("begin", "end"))
    names = [Row(AIRLINES, code, name) for code, name in airline_names(edition).items()]
    return [begin, *names, end]


def write(producer: Producer, rows: Sequence[Row]) -> None:
    """All of them are in their topics.

    Raises:
        SystemExit: not all were written.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    for topic, key, value, headers in rows:
        producer.produce(topic, value, key=key, headers={**headers}, on_delivery=delivered)
    left = producer.flush(_LIMIT_S)
    if failures or left:
        raise SystemExit(
            f"error: {len(failures) + left} records of reference data were not written: "
            f"{failures[:1]}"
        )


def _json(row: dict[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":"))
