"""What would come of an operator's action, line by line, for people."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.appmaster.allocation.what_if import CommandOutlook, Fate
from homeport.job_coordinator.model.placement import CANCEL, PlacementStatus

REFUSED = frozenset({PlacementStatus.BAD_REQUEST, PlacementStatus.FAILED})
"""Answers to what is not done."""


def outlook_lines(outlook: CommandOutlook) -> Iterable[str]:
    """What would come of a command, line by line: what becomes of containers, then the answer."""
    for fate in outlook.fates:
        yield fate_line(fate)
    if outlook.answer is None:
        yield "the job takes no command now: it waits until it does"
    elif not outlook.answer.status.is_final:
        yield f"then it waits: {outlook.answer.message}"
    elif outlook.answer.status in REFUSED or outlook.answer.request.destination == CANCEL:
        yield outlook.answer.message


def fate_line(fate: Fate) -> str:
    """Where a container is, and where it would be."""
    name, place = str(fate.before.processor_id), fate.host_before or "nowhere"
    if not fate.is_placed:
        return f"{name}: {place} -> nowhere"
    if fate.host == fate.host_before:
        return f"{name}: stops, and starts again on {place}"
    return f"{name}: {place} -> {fate.host or 'nowhere'}"
