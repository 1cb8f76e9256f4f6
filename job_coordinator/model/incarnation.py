"""Incarnations of processors, and the transactional ids that fence them and AM attempts.

PURE. An id joins escaped parts by a separator that no part contains (safety K3): the ids of job
("a", "1.0") and job ("a.1", "0") differ.
"""

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.json_values import as_object, required_field
from homeport.job_coordinator.model.wire_form import Number, value_of

_EPOCH = re.compile(r"\d{1,18}", re.ASCII)
STATE_TOPIC = "__transaction_state"
"""Kafka's own topic with the state of each transactional id."""


@dataclass(frozen=True, order=True, slots=True)
class Incarnation:
    """(processor, epoch): one start permit. The epoch grows at each permit and never recurs."""

    processor_id: ProcessorId
    epoch: Number

    def to_json(self) -> dict[str, Any]:
        """Return ``{processor_id, epoch}``, as in records, on HTTP and from process to process."""
        return {"processor_id": self.processor_id, "epoch": self.epoch}


def incarnations_to_json(incarnations: Iterable[Incarnation]) -> list[dict[str, Any]]:
    """Return ``[{processor_id, epoch}]``."""
    return [incarnation.to_json() for incarnation in incarnations]


def incarnations_from_json(body: Mapping[str, Any], name: str) -> tuple[Incarnation, ...]:
    """Return the incarnations of the list ``name``; WireError where it is missing or wrong."""
    items = required_field(body, name, list)
    return tuple(
        value_of(Incarnation, as_object(item, f"item of {name!r}"), name) for item in items
    )


def _escaped(part: str) -> str:
    return quote(part, safe="").replace(".", "%2E")


def job_identity(job_name: str, job_id: str) -> str:
    """Return ``homeport.<job name>.<job id>``, each part escaped: no two jobs have the same one."""
    return ".".join(("homeport", _escaped(job_name), _escaped(job_id)))


def transactional_id(job_name: str, job_id: str, incarnation: Incarnation) -> str:
    """Return ``homeport.<job name>.<job id>.processor.<processor>.<epoch>``, each part escaped."""
    parts = ("processor", incarnation.processor_id, str(incarnation.epoch))
    return ".".join((job_identity(job_name, job_id), *(_escaped(p) for p in parts)))


def incarnation_of(job_name: str, job_id: str, identifier: str) -> Incarnation | None:
    """Return the incarnation that ``identifier`` names; None if it is no id of this job."""
    head, _, epoch = identifier.rpartition(".")
    _, _, processor = head.rpartition(".")
    if not _EPOCH.fullmatch(epoch):
        return None
    found = Incarnation(ProcessorId(unquote(processor)), int(epoch))
    return found if transactional_id(job_name, job_id, found) == identifier else None


def am_transactional_id(
    job_name: str, job_id: str, submission: int, application_id: str, attempt: int
) -> str:
    """Return ``homeport.<job>.<id>.am.<submission>.<application>.<attempt>``, each part escaped.

    Each rank of an AM attempt has its own id. Source: safety A1.
    """
    parts = ("am", str(submission), application_id, str(attempt))
    return ".".join((job_identity(job_name, job_id), *(_escaped(p) for p in parts)))


def conversion_transactional_id(job_name: str, job_id: str) -> str:
    """Return ``homeport.<job>.<id>.convert``, under which a conversion writes changelogs.

    It is one for all conversions of a job: a later one, a reset and a deletion fence an earlier.
    """
    return f"{job_identity(job_name, job_id)}.convert"


def state_partition(transactional_id: str, count: int) -> int:
    """Return which of the ``count`` partitions of STATE_TOPIC has the records of the id.

    The leader of that partition coordinates the transactions of the id.
    Source: the absolute value of Java's String.hashCode, modulo ``count``.
    """
    found = 0
    for (unit,) in struct.iter_unpack(">H", transactional_id.encode("utf-16-be")):
        found = (31 * found + unit) & 0xFFFFFFFF
    return min(found, 0x100000000 - found) % 0x80000000 % count
