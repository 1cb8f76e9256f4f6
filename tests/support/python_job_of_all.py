"""A job of every kind: a pipeline that joins reference data, windows, and what is late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homeport import IncomingMessage, Job
from homeport.windows import Late, WindowResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME = "job-of-all"
SIZE_MS = 60_000


@dataclass
class Flight:
    """A flight's JSON."""

    tail: str
    miles: int = 0


job = Job(NAME, kafka="here:1", containers=2, keys={"cluster-manager.container.cpu.cores": 1})
flights = job.input(f"{NAME}-flights", key=str, value=Flight)
planes = job.reference("planes", key=str, value=str, topic=f"{NAME}-planes")
summed = job.output(f"{NAME}-summed", key=str, value=dict, partitions=3)
lost = job.output(f"{NAME}-lost", key=str, value=int, partitions=3)
per_minute = job.window("per-minute", value=int, size=SIZE_MS, late=1_000)


@job.pipeline(flights, planes)
def named(frame: DataFrame, models: DataFrame) -> DataFrame:
    """Join the model of each plane; flights of unknown planes stay."""
    own = frame.where("value.miles > 0").selectExpr("key", "value.tail", "value.miles", "timestamp")
    return own.join(models.selectExpr("key AS tail", "value AS model"), "tail", "left")


@job.each(named)
def count(_key: bytes, row: dict[str, Any], message: IncomingMessage) -> None:
    """Add the miles of a flight to those of its plane and model."""
    per_minute.add(message, row["miles"], key=f"{row['tail']} {row['model']}")


@job.closed(per_minute)
def closed(key: str, miles: int, window: WindowResult) -> None:
    """Send what a window has."""
    summed.send(key, {"from": window.start_ms, "miles": miles})


@job.late(per_minute)
def late(key: str, miles: int, found: Late) -> None:
    """Send what came too late."""
    lost.send(key, miles, timestamp=found.at_ms)
