"""What the dashboard gets of a job, again and again: the first screen, hosts, and each container.

PURE. Out of the body of ``/v1/status``, without what the page does not show: no log line, and no
single store. So it is some 350 bytes of a container.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from homeport.job_coordinator.ui.first_screen import first_screen, seconds_left
from homeport.job_coordinator.ui.plots import Plots

_OF_JOB = ("name", "id", "application", "coordinator", "attempt", "state", "health")
_FEW: Final = 12
"""Of a cluster of more hosts only those with a container of the job are shown."""


def snapshot(status: Mapping[str, Any], plots: Plots, now_ms: int) -> dict[str, Any]:
    """The body of ``GET /ui/state``, but for the time. ``now_ms``: since 1970."""
    job: Mapping[str, Any] = status.get("job") or {}
    containers: Sequence[Mapping[str, Any]] = status.get("containers", ())
    return {
        "job": {**{name: job.get(name) for name in _OF_JOB}, "version": job.get("model_version")},
        "application_url": status.get("application_url") or None,
        "coordinator_url": status.get("coordinator_url") or None,
        "screen": first_screen(status, now_ms).to_json(),
        "hosts": _hosts(status, containers),
        "hosts_live": len(status.get("hosts") or ()),
        "containers": [_container(c, plots) for c in containers],
    }


def _hosts(
    status: Mapping[str, Any], containers: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The hosts that containers name, by name; of a small cluster also the others."""
    live = {str(host) for host in status.get("hosts") or ()}
    excluded = set(status.get("excluded_hosts") or ())
    named = {place for place in map(_place, containers) if place is not None}
    shown = named | live if len(named | live) <= _FEW else named
    return [{"host": host, "state": _state_of(host, live, excluded)} for host in sorted(shown)]


def _state_of(host: str, live: Collection[str], excluded: Collection[str]) -> str:
    if host in excluded:
        return "not requested"
    return "live" if host in live or not live else "lost"


def _place(container: Mapping[str, Any]) -> str | None:
    """The column that it is shown in: where it is, is to be, or was last."""
    for name in ("host", "requested_host", "last_host"):
        if container.get(name):
            return str(container[name])
    return None


def _container(container: Mapping[str, Any], plots: Plots) -> dict[str, Any]:
    report: Mapping[str, Any] = container.get("report") or {}
    name = str(container["processor_id"])
    newest = plots.newest(name)
    is_standby = container.get("replica_of") is not None
    resource, epoch = container.get("resource"), container.get("epoch") or 0
    return {
        "id": name,
        "of": container.get("replica_of"),
        "place": _place(container),
        "is_there": bool(container.get("host")),
        "phase": container["phase"],
        "since_ms": container.get("since_ms") or 0,
        "epoch": epoch,
        "version": container.get("model_version"),
        "lag": container.get("lag") if is_standby else report.get("input_lag"),
        "lag_s": container.get("lag_seconds"),
        "lag_left_s": plots.caught_up_in_s(name),
        "processed": report.get("processed"),
        "records_per_s": newest["records_per_s"],
        "batch_ms": newest["batch_ms"],
        "commit_ms": newest["commit_ms"],
        "failures": container.get("failures") or 0,
        "last_failure": container.get("last_failure"),
        "restore": _restore(container, report),
        "resource": resource,
        "log": f"container-{name}-{epoch}.log" if resource and epoch else None,
        "log_url": container.get("log_url"),
        "leads": bool(container.get("is_leader")),
    }


def _restore(container: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, Any] | None:
    """All its restores together; None where none is under way."""
    stores: Sequence[Mapping[str, Any]] = report.get("restoring") or ()
    if not stores:
        return None
    records = sum(store["records"] for store in stores)
    remaining = sum(store["remaining"] for store in stores)
    return {
        "stores": len(stores),
        "done": records / (records + remaining) if records + remaining else 0.0,
        "remaining": remaining,
        "left_s": seconds_left(container),
    }
