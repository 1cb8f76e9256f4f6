"""What the history says of where a container's tasks begin, other than their last commit says."""

from __future__ import annotations

import logging

from homeport.container.incarnation.changelog_trims import StoreTrim
from homeport.container.incarnation.start_up import History, Reset
from homeport.container.progress.checkpoint import Change
from homeport.container.progress.input_position import InputPosition, lost_story
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)


def report_change(history: History, task_name: TaskName, change: Change) -> None:
    """The history says where an operator has had the task go on, as no commit says it."""
    history(
        "checkpoint-set",
        task=task_name,
        input=change.ssp.name,
        first=change.first,
        next=change.next_offset,
    )


def report_reset(history: History, reset: Reset) -> None:
    """The history says where the task begins, as its last commit does not say it."""
    history(
        "input-reset",
        task=reset.task_name,
        input=reset.ssp.name,
        first=reset.checkpoint,
        next=reset.next_offset,
    )


def report_trim(history: History, item: StoreTrim) -> None:
    """Write to log and history which records of a Samza job take no part in the state."""
    changes, trim = item.changes, item.trim
    _LOG.info(
        "store %s: back to offset %d of %s, where the last checkpoint has its state end: %d keys",
        changes.store_id,
        trim.offset,
        changes.changelog,
        len(trim.entries),
    )
    history(
        "changelog-trimmed",
        store=changes.store,
        task=changes.task_name,
        offset=trim.offset,
        keys=len(trim.entries),
        unsure=trim.unsure,
    )


def report_lost(history: History, ssp: SystemStreamPartition, position: InputPosition) -> None:
    """Log and history say which offsets of the partition are never read."""
    _LOG.error("%s", lost_story(ssp, position))
    history(
        "input-lost",
        input=ssp.name,
        first=position.offset - position.lost,
        next=position.offset,
        lost=position.lost,
    )
