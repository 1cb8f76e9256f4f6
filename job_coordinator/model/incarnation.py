"""Incarnations of processors, and the transactional ids that fence them and AM attempts.

PURE. Ids are built from escaped parts with a separator that cannot occur in them (safety K3): job
("a", "1.0") and job ("a.1", "0") differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from homeport.job_coordinator.model.ids import ProcessorId


@dataclass(frozen=True, order=True, slots=True)
class Incarnation:
    """(processor, epoch): one start permit. The epoch grows at each permit and never recurs."""

    processor_id: ProcessorId
    epoch: int


def _escaped(part: str) -> str:
    return quote(part, safe="").replace(".", "%2E")


def transactional_id(job_name: str, job_id: str, incarnation: Incarnation) -> str:
    """``homeport.<job name>.<job id>.processor.<processor>.<epoch>``, each part escaped."""
    parts = (job_name, job_id, "processor", incarnation.processor_id, str(incarnation.epoch))
    return ".".join(("homeport", *(_escaped(p) for p in parts)))


def incarnation_of(job_name: str, job_id: str, identifier: str) -> Incarnation | None:
    """Whose ``transactional_id`` of the job it is; None where it is none of its."""
    head, _, epoch = identifier.rpartition(".")
    _, _, processor = head.rpartition(".")
    if not (epoch.isascii() and epoch.isdigit()):
        return None
    found = Incarnation(ProcessorId(unquote(processor)), int(epoch))
    return found if transactional_id(job_name, job_id, found) == identifier else None


def am_transactional_id(
    job_name: str, job_id: str, submission: int, application_id: str, attempt: int
) -> str:
    """One id per rank: ``homeport.<job name>.<job id>.am.<submission>.<application>.<attempt>``.

    Source: safety A1.
    """
    parts = (job_name, job_id, "am", str(submission), application_id, str(attempt))
    return ".".join(("homeport", *(_escaped(p) for p in parts)))
