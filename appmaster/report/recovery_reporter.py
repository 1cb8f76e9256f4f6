"""The driver's side of recoveries: feeds ``Recoveries`` with times, and reports those that end."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import to_builtins

from homeport.appmaster.report.allocator_metrics import AllocatorMetrics
from homeport.appmaster.report.recovery import Recoveries, Recovery, Times
from homeport.appmaster.report.step import Step
from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.shape import ShownRecovery


class RecoveryReporter:
    """To be used on the driver's event loop. Each recovery that ends is reported once."""

    def __init__(self, history: HistoryWriter, metrics: AllocatorMetrics) -> None:
        self._recoveries = Recoveries()
        self._history = history
        self._metrics = metrics

    def seen(self, incarnation: Incarnation, at_ms: int) -> None:
        """The last sign of life of what has ended, on CLOCK_BOOTTIME of this host."""
        self._recoveries.seen(incarnation, at_ms)

    def decided(self, step: Step) -> None:
        """The records of a decision have just been written."""
        times = Times(step.known_ms, boot_ms(), wall_ms())
        self._report(self._recoveries.decided(step.before, step.event, step.decision, times))

    def started(self, message: Started) -> None:
        """A stream container has just reported how long its start took."""
        self._recoveries.started(message.incarnation, message.seconds, boot_ms())

    def reported(self, incarnation: Incarnation, report: ContainerReport | None) -> None:
        """What a running container reports of its work, again and again."""
        after_ms = None if report is None else report.works_after_ms
        if after_ms is not None:
            self._report(self._recoveries.works(incarnation, after_ms, boot_ms()))

    def shown(self, processor_id: ProcessorId) -> ShownRecovery | None:
        """Return its last recovery as ``/v1/status`` shows it; None where it had none."""
        recovery = self._recoveries.last(processor_id)
        return None if recovery is None else recovery.shown(boot_ms())

    def _report(self, ended: Iterable[Recovery]) -> None:
        for recovery in ended:
            self._metrics.recovered(recovery)
            facts = to_builtins(recovery.shown(recovery.since_ms))
            self._history.event("recovered", recovery.processor_id, recovery.epoch, **facts)
