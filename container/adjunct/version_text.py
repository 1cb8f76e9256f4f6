"""The texts of a version's parts and of the catalogue.

PURE. Parts are the value of a reserved entry of the version's store, the catalogue is a file of the
form of OFFSET. Partitions are written as in OFFSET-v2: ``system.stream.partition``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from homeport.config.errors import WireError
from homeport.config.number_text import whole_of
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.versions import Catalogue, Left, Part, Parts, VersionFault, Versions
from homeport.container.progress.store_meta import whole
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.job_coordinator.model.job_model import SystemStreamPartition

PARTS_KEY = RESERVED_PREFIX + b"parts"
"""Reserved: hidden from all reads, and written together with what it speaks for."""
CATALOGUE_FILE = "CATALOGUE"

_SHOWN = 200
_Parsed = TypeVar("_Parsed")


def parts_text(parts: Parts) -> str:
    """The text of ``parts``."""
    fields = {ssp.name: _fields(part) for ssp, part in sorted(parts.items())}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def parse_parts(text: str) -> Parts:
    """The parts that ``text`` holds; WireError where it is not a text of parts."""
    return _parsed(text, "parts", lambda found: {_ssp(k): _part(v) for k, v in found.items()})


def catalogue_text(catalogue: Catalogue) -> str:
    """The text of ``catalogue``."""
    fields = {
        "settled": catalogue.settled,
        "served": catalogue.served,
        "records": catalogue.records,
        "floors": {ssp.name: floor for ssp, floor in sorted(catalogue.floors.items())},
    }
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def parse_catalogue(text: str) -> Catalogue:
    """The catalogue that ``text`` holds; WireError where it is not the text of a catalogue."""
    return _parsed(text, "a catalogue", _catalogue)


def awaited(versions: Versions) -> str:
    """Return what the first visible version lacks; where none is whole, what the newest lacks."""
    served = versions.catalogue.served
    if served is None and not versions.building:
        return "no version has begun in its stream"
    number = max(versions.building) if served is None else served
    parts = versions.building.get(number, {})
    open_ = [p for p in versions.partitions if p not in parts or parts[p].left is not Left.ENDED]
    if served is not None or not open_:
        return f"version {number} is not on the disk yet"
    return f"version {number} has no end in partition {', '.join(str(p.partition) for p in open_)}"


def _parsed(text: str, what: str, parse: Callable[[dict[str, Any]], _Parsed]) -> _Parsed:
    try:
        return parse(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WireError(f"it holds {text[:_SHOWN]!r}, which is not the text of {what}") from None


def _catalogue(found: Mapping[str, Any]) -> Catalogue:
    served = found["served"]
    return Catalogue(
        settled=whole(found["settled"]),
        served=None if served is None else whole(served),
        records=whole(found["records"]),
        floors={_ssp(name): whole(floor) for name, floor in found["floors"].items()},
    )


def _fields(part: Part) -> dict[str, Any]:
    fields: dict[str, Any] = {"next": part.next, "records": part.records, "left": part.left.value}
    if part.began_ms is not None:
        fields["began-ms"] = part.began_ms
    if part.fault is not None:
        fields["fault"] = part.fault.name
    if part.begins:
        fields["begins"] = {str(number): at for number, at in sorted(part.begins.items())}
    return fields


def _part(found: Mapping[str, Any]) -> Part:
    began_ms, fault = found.get("began-ms"), found.get("fault")
    return Part(
        next=whole(found["next"]),
        records=whole(found["records"]),
        left=Left(found["left"]),
        began_ms=None if began_ms is None else whole(began_ms),
        fault=None if fault is None else VersionFault[fault],
        begins={whole_of(number): whole(at) for number, at in found.get("begins", {}).items()},
    )


def _ssp(name: str) -> SystemStreamPartition:
    stream, _, partition = name.rpartition(".")
    found = SystemStream.parse(stream)
    if found is None:
        raise ValueError(name)
    return SystemStreamPartition(found.system, found.stream, whole_of(partition))
