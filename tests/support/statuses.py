"""Statuses of jobs, of the fields that a test names; what it leaves out has a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.wire_form import value_of
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import ShownContainer, ShownStatus

_STORE = {"store": "s", "task": "Partition 0", "records": 0}
_ITEMS: Mapping[str, Mapping[str, Any]] = {
    "restoring": {**_STORE, "bytes": 0, "remaining": 0, "records_per_s": 0.0, "seconds_left": None},
    "lags": _STORE,
    "dropped": {"store": "s", "task": "Partition 0", "count": 0},
    "adjuncts": {**_STORE, "input": "kafka.a", "kind": "partitioned"},
    "stages": {"stage": "tasks", "ms": 0},
}


def report_of(body: Mapping[str, Any]) -> ContainerReport:
    """Return the report of ``body``, whose items may lack fields."""
    whole = {
        name: [_whole(name, item) for item in value] if name in _ITEMS else value
        for name, value in body.items()
    }
    return ContainerReport.from_json(whole)


def _whole(name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    given = {field: value for field, value in item.items() if (field, value) != ("positions", None)}
    return {**_ITEMS[name], **given}


def _container(body: Mapping[str, Any]) -> dict[str, Any]:
    report = body.get("report")
    whole = {"processor_id": "0", "phase": "running", **body}
    return whole if report is None else {**whole, "report": report_of(report).to_json()}


def container_of(body: Mapping[str, Any]) -> ShownContainer:
    """Return the container of ``body``: processor 0, which runs, where it names neither."""
    return value_of(ShownContainer, _container(body), "a container")


def status_of(body: Mapping[str, Any]) -> ShownStatus:
    """Return the status of ``body``."""
    containers = [_container(each) for each in body.get("containers", ())]
    return value_of(ShownStatus, {**body, "containers": containers}, "the status")


def body_of_status(status: ShownStatus) -> dict[str, Any]:
    """Return the body of ``GET /v1/status``, with each field."""
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(status))
    return body


def outlook_of(*hosts: Host) -> ShownOutlook:
    """Return that nothing would come of the loss of these hosts."""
    return ShownOutlook(
        hosts=hosts,
        containers=(),
        unplaced=(),
        notes=(),
        shortage=None,
        suspects_itself=False,
        job="active",
        is_settled=True,
    )
