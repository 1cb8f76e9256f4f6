"""RestoreReport: the restores of one container, as history, log and AM see them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from homeport.container.progress.restore import RestorePlan
from homeport.container.progress.restore_meter import progress_line
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.container_report import ContainerReport, RestoreProgress

_LOG = logging.getLogger(__name__)

_SAY_S = 5.0

_Place = tuple[str, TaskName]


class RestoreReport:
    """A ``RestoreListener``. Several stores may be under way at once.

    Args:
        history: writes one event of the job's history.
        send: hands a report on to the AM; the last one holds.
    """

    def __init__(
        self, history: Callable[..., None], send: Callable[[ContainerReport], None]
    ) -> None:
        self._history = history
        self._send = send
        self._began: dict[_Place, float] = {}
        self._said: dict[_Place, float] = {}
        self._under_way: dict[_Place, RestoreProgress] = {}

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        """The store is about to be read."""
        self._began[store, task_name] = self._said[store, task_name] = time.monotonic()
        self._history(
            "restore-started",
            store=store,
            task=task_name,
            head=plan.head,
            rebuild=plan.rebuild,
            reason=plan.reason,
            **{"from": plan.start},
        )

    def restore_progress(self, progress: RestoreProgress) -> None:
        """The AM knows it; the log says it every five seconds."""
        place = (progress.store, progress.task)
        now = time.monotonic()
        if now - self._said[place] >= _SAY_S:
            self._said[place] = now
            _LOG.info("%s", progress_line(progress))
        self._under_way[place] = progress
        self._send_all()

    def restore_finished(self, store: str, task_name: TaskName, result: Restored) -> None:
        """The store stands at the head."""
        seconds = time.monotonic() - self._began[store, task_name]
        kind, records = result.kind.value, result.records
        _LOG.info(
            "restored %s/%s: %s, %d records, %.2f s", store, task_name, kind, records, seconds
        )
        self._history("restore-finished", store=store, task=task_name, **result.to_json())
        if self._under_way.pop((store, task_name), None) is not None:
            self._send_all()

    def _send_all(self) -> None:
        self._send(ContainerReport(restoring=tuple(self._under_way.values())))
