"""The texts of a version's parts and of the catalogue.

PURE. The parts are the value of a reserved entry in the version's store. The catalogue is a file in
the form of OFFSET. Partitions are written as in OFFSET-v2: ``system.stream.partition``.
"""

import msgspec

from homeport.config.number_text import whole_of
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.versions import (
    Catalogue,
    PartitionEnd,
    Progress,
    VersionFault,
    VersionProgress,
    Versions,
)
from homeport.container.progress.store_meta import parsed, text_of
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.job_coordinator.model.job_model import SystemStreamPartition

PARTS_KEY = RESERVED_PREFIX + b"parts"
"""Reserved: hidden from all reads, and written together with the entries that it is about."""
CATALOGUE_FILE = "CATALOGUE"


class _PartText(msgspec.Struct, rename="kebab", omit_defaults=True):
    next: int
    records: int
    left: PartitionEnd
    began_ms: int | None = None
    fault: str | None = None
    begins: dict[int, int] = msgspec.field(default_factory=dict)


class _CatalogueText(msgspec.Struct):
    settled: int
    served: int | None
    records: int
    floors: dict[str, int]


def parts_text(parts: VersionProgress) -> str:
    """Return the text of ``parts``."""
    return text_of({ssp.name: _part_text(part) for ssp, part in sorted(parts.items())})


def parse_parts(text: str) -> VersionProgress:
    """Return the parts that ``text`` holds; WireError where it is not a text of parts."""
    return parsed(
        text,
        dict[str, _PartText],
        "the text of parts",
        lambda found: {_ssp(name): _part(part) for name, part in found.items()},
    )


def catalogue_text(catalogue: Catalogue) -> str:
    """Return the text of ``catalogue``."""
    floors = {ssp.name: floor for ssp, floor in sorted(catalogue.settled_below.items())}
    return text_of(_CatalogueText(catalogue.settled, catalogue.served, catalogue.records, floors))


def parse_catalogue(text: str) -> Catalogue:
    """Return the catalogue of ``text``; WireError where it is not the text of a catalogue."""
    return parsed(text, _CatalogueText, "the text of a catalogue", _catalogue)


def awaited(versions: Versions) -> str:
    """Return what the first visible version lacks, or the newest where none is whole."""
    served = versions.catalogue.served
    if served is None and not versions.building:
        return "no version has begun in its stream"
    number = max(versions.building) if served is None else served
    parts = versions.building.get(number, {})
    open_ = [
        p for p in versions.partitions if p not in parts or parts[p].end is not PartitionEnd.ENDED
    ]
    if served is not None or not open_:
        return f"version {number} is not on the disk yet"
    return f"version {number} has no end in partition {', '.join(str(p.partition) for p in open_)}"


def _catalogue(found: _CatalogueText) -> Catalogue:
    floors = {_ssp(name): floor for name, floor in found.floors.items()}
    return Catalogue(found.settled, found.served, found.records, floors)


def _part_text(part: Progress) -> _PartText:
    fault = None if part.fault is None else part.fault.name
    begins = dict(sorted(part.begins.items()))
    return _PartText(part.next, part.records, part.end, part.began_ms, fault, begins)


def _part(found: _PartText) -> Progress:
    fault = None if found.fault is None else VersionFault[found.fault]
    return Progress(found.next, found.records, found.left, found.began_ms, fault, found.begins)


def _ssp(name: str) -> SystemStreamPartition:
    stream, _, partition = name.rpartition(".")
    found = SystemStream.parse(stream)
    if found is None:
        raise ValueError(name)
    return SystemStreamPartition(found.system, found.stream, whole_of(partition))
