"""Shows each decision of the driver once: in its log, in the job's history and over HTTP.

An order comes again with each check-in until it is obeyed; repetitions are not shown.
"""

import logging
from collections.abc import Iterable

from msgspec import to_builtins

from homeport.appmaster.allocation.job_state.state import ContainerRole, ContainerState
from homeport.appmaster.allocation.protocol.events import describe
from homeport.appmaster.allocation.protocol.instructions import (
    EndFailover,
    Instruction,
    PermitContainer,
    PrepareProcess,
    ReleaseResource,
    StopContainer,
    WriteFailover,
    WritePlacementResponse,
    brief,
)
from homeport.appmaster.lease.launcher_table import LauncherTable
from homeport.appmaster.report.allocator_metrics import AllocatorMetrics
from homeport.appmaster.report.event_log import EventLog
from homeport.appmaster.report.recovery import Recoveries, Recovery, Times
from homeport.appmaster.report.step import Step
from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.messages import Started, Stopped
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.container_report import ContainerReport

log = logging.getLogger("driver")


class DecisionLog:
    """Logs decisions, counts them in ``metrics`` and keeps the last ones in ``events``.

    Permits, stops and preparations come again and again; it remembers which it has shown. Each
    recovery that ends is reported once. For the driver's event loop.
    """

    def __init__(self, history: HistoryWriter, launchers: LauncherTable) -> None:
        self.events = EventLog(wall_ms)
        self.metrics = AllocatorMetrics()
        self.recoveries = Recoveries()
        self._history = history
        self._launchers = launchers
        self._permitted: set[Incarnation] = set()
        self._stopped: set[Incarnation] = set()
        self._prepared: set[PrepareProcess] = set()

    def started(self, message: Started) -> None:
        """Note that a stream container has reported its start."""
        self.recoveries.started(message.incarnation, message.seconds, boot_ms())
        self.event("started", message.incarnation, seconds=dict(message.seconds))

    def stopped(self, message: Stopped, seen_ms: int) -> None:
        """Note a stop that a launcher has reported, and saw at ``seen_ms``."""
        incarnation = message.incarnation
        self.recoveries.seen(incarnation, seen_ms)
        log.info(
            "processor %s epoch %d stopped: %s, exit code %d",
            incarnation.processor_id,
            incarnation.epoch,
            message.cause.value,
            message.exit_code,
        )

    def works(self, incarnation: Incarnation, report: ContainerReport | None) -> None:
        """Note a running container's report of its work, which comes again and again."""
        after_ms = None if report is None else report.works_after_ms
        if after_ms is not None:
            self._report(self.recoveries.works(incarnation, after_ms, boot_ms()))

    def _report(self, ended: Iterable[Recovery]) -> None:
        for recovery in ended:
            self.metrics.recovered(recovery)
            facts = to_builtins(recovery.shown(recovery.since_ms))
            self._history.event("recovered", recovery.processor_id, recovery.epoch, **facts)

    def decided(self, step: Step) -> None:
        """Show a decision, before it is carried out."""
        event, decision = step.event, step.decision
        if step.before.ending is None and decision.state.ending is not None:
            self._history.event("job-ending", result=decision.state.ending.result.value)
        self.metrics.decided(event, decision)
        times = Times(step.known_ms, boot_ms(), wall_ms())
        self._report(self.recoveries.decided(step.before, event, decision, times))
        orders = [i for i in decision.instructions if not self._is_repeated(i)]
        self._prepared.update(i for i in orders if isinstance(i, PrepareProcess))
        if orders or decision.records or (decision.reasons and not decision.instructions):
            self.events.add(event, decision, orders)
        if not orders and not decision.records:
            return
        for record in decision.records:
            match record:
                case WritePlacementResponse():
                    self._answered(record)
                case WriteFailover():
                    self._failover_decided(record)
                case EndFailover():
                    active, cause = record.active, record.cause
                    self._history.event("failover-ended", active=active, cause=cause)
        names = [brief(i) for i in orders]
        facts = {"decision": describe(event), "instructions": names, "processors": _concerned(step)}
        text = "; ".join(names) or "records"
        log.info("%s -> %s", describe(event), text, extra={"facts": facts})
        self._history.event("decision", cause=describe(event), instructions=names)

    def _answered(self, answer: WritePlacementResponse) -> None:
        request = answer.request
        self._history.event(
            "placement-answered",
            commanded=request.processor_id,
            destination=request.destination,
            uuid=request.uuid,
            status=answer.status.value,
            message=answer.message,
            standby=answer.standby,
        )

    def _failover_decided(self, record: WriteFailover) -> None:
        self._history.event(
            "failover-decided",
            active=record.active,
            active_epoch=record.epoch,
            step=record.step.value,
            standby=record.standby,
            to_host=record.host,
            cause=record.cause,
        )

    def _is_repeated(self, instruction: Instruction) -> bool:
        if isinstance(instruction, PermitContainer):
            return instruction.incarnation in self._permitted
        if isinstance(instruction, StopContainer):
            return instruction.incarnation in self._stopped
        if isinstance(instruction, PrepareProcess):
            return instruction in self._prepared
        return isinstance(instruction, ReleaseResource)

    def permitted(self, permit: PermitContainer, container: ContainerState | None) -> None:
        """Note a permit that is on its way; ``container``: None: it is not known any more."""
        incarnation = permit.incarnation
        if incarnation not in self._permitted:
            self._permitted.add(incarnation)
            launcher = self._launchers.find(permit.resource_id)
            self.event(
                "permit-granted",
                incarnation,
                resource=permit.resource_id,
                on_host=launcher.host if launcher else None,
                model_version=permit.model_version,
                **_role_of(container),
            )

    def stop_ordered(self, order: StopContainer) -> None:
        """Note that an order to stop is on its way."""
        if order.incarnation not in self._stopped:
            self._stopped.add(order.incarnation)
            self.event("stop-ordered", order.incarnation, resource=order.resource_id)

    def revoked(self, incarnation: Incarnation, renewed_ms: int | None) -> None:
        """Note a lease that ran out; ``renewed_ms``: its last renewal, if any."""
        self.metrics.lease_expired()
        if renewed_ms is not None:
            self.recoveries.seen(incarnation, renewed_ms)
        self.event("revoked", incarnation, renewed_ms=renewed_ms)

    def event(self, name: str, incarnation: Incarnation, **fields: object) -> None:
        """Write an event of an incarnation into the history."""
        self._history.event(name, incarnation.processor_id, incarnation.epoch, **fields)


def _concerned(step: Step) -> list[dict[str, object]]:
    state, found = step.decision.state, list[dict[str, object]]()
    for reason in step.decision.reasons:
        container = None if reason.processor_id is None else state.container(reason.processor_id)
        if container is not None:
            host = state.host_of(container) or reason.host
            facts = {"processor": container.processor_id, "epoch": container.epoch, "host": host}
            found.append({**facts, "reason": str(reason)})
    return found


def _role_of(container: ContainerState | None) -> dict[str, object]:
    if container is None or container.replica_of is None:
        return {}
    role: dict[str, object] = {
        "processor_role": ContainerRole.STANDBY.value,
        "active_processor_id": container.replica_of,
    }
    return {**role, "temporary": True} if container.is_temporary else role
