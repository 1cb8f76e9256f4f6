"""The code and the configuration of the living job, edition by edition."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from flights_demo.job import EXAMPLE

_EDITIONS = (
    ("zoned_planes", "ZonedPlanes"),
    ("late_planes", "LatePlanes"),
    ("airport_flights", "AirportFlights"),
)
"""(Module below ``editions``, its class) of each; a later one builds on those before."""
_SOURCE = Path(__file__).with_name("editions")
_TASK, _SCHEMA = "living_task", "summary.avsc"
_LATE = {"name": "late", "type": "long", "default": 0}

REPARTITION, OUTPUT = "by-airport", "airport-flights"
FIRST_KEYS = {
    "task.class": f"{_TASK}:Task",
    "stores.summaries.msg.serde": "summary",
    "serializers.registry.summary.class": "avro",
    "serializers.registry.summary.schema.file": _SCHEMA,
}
"""How the file of the living job differs from that of the flights job."""
REKEYED_KEYS = {
    f"task.repartition.{REPARTITION}": "inputs",
    "stores.arrivals.factory": "rocksdb",
    "stores.arrivals.changelog": "kafka.flights-arrivals-changelog",
    "stores.arrivals.key.serde": "string",
    "stores.arrivals.msg.serde": "json",
    "task.outputs": f"kafka.plane-summary, kafka.{OUTPUT}",
    "task.outputs.create.partitions": "8",
}
"""What the file gets with the third edition."""


def make_package(target: Path, edition: int) -> Path:
    """Make the package of an edition, 1 to 3; return its folder."""
    shutil.copytree(EXAMPLE / "package", target)
    for module, _ in _EDITIONS[:edition]:
        shutil.copy(_SOURCE / f"{module}.py", target)
    module, name = _EDITIONS[edition - 1]
    (target / f"{_TASK}.py").write_text(f"from {module} import {name} as Task\n", "utf-8")
    (target / _SCHEMA).write_text(json.dumps(schema(edition), indent=1), "utf-8")
    return target


def schema(edition: int) -> dict[str, object]:
    """Return the schema of a summary: from the second edition on it has the field ``late``."""
    numbers = ("flights", "cancelled", "dep_delay_min", "miles")
    fields: list[dict[str, object]] = [{"name": name, "type": "long"} for name in numbers]
    texts = ("last_airport", "carrier")
    fields += [{"name": name, "type": ["null", "string"]} for name in texts]
    return {"type": "record", "name": "Summary", "fields": fields + [_LATE] * (edition > 1)}


def with_keys(properties: str, changes: Mapping[str, str]) -> str:
    """Return the text of a properties file with these keys, in the place of their former values."""
    lines = [
        line for line in properties.splitlines() if line.partition("=")[0].strip() not in changes
    ]
    return "\n".join([*lines, *(f"{key}={value}" for key, value in changes.items()), ""])
