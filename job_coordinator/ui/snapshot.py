"""Makes what the dashboard shows: first screen, hosts, containers, and configuration.

PURE. The page gets the whole state again and again. To keep it at about 350 bytes per container,
the state leaves out log lines and single stores.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from homeport.config.secret_names import shown_value
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.own_metrics import summary
from homeport.job_coordinator.status.shape import ShownContainer, ShownStatus
from homeport.job_coordinator.ui.first_screen import first_screen, kept_standbys, seconds_left
from homeport.job_coordinator.ui.plots import Plots

_MOST_HOSTS: Final = 12
"""In a cluster with more hosts the page shows only those with a container of the job."""
_MOST_METRICS: Final = 100
"""Of the job's own; ``/metrics`` has all."""


def snapshot(status: ShownStatus, plots: Plots, now_ms: int) -> dict[str, Any]:
    """Return the body of ``GET /ui/state`` without its time. ``now_ms``: ms since 1970."""
    job = status.job
    return {
        "job": {
            "name": job.name,
            "id": job.id,
            "application": job.application,
            "coordinator": job.coordinator,
            "attempt": job.attempt,
            "state": job.state,
            "health": job.health,
            "version": job.model_version,
        },
        "application_url": status.application_url or None,
        "coordinator_url": status.coordinator_url or None,
        "screen": msgspec.to_builtins(first_screen(status, now_ms)),
        "hosts": _hosts(status),
        "hosts_live": len(status.hosts),
        "containers": [_container(c, plots) for c in status.containers],
        "metrics": summary(status.own_metrics)[:_MOST_METRICS],
    }


def _hosts(status: ShownStatus) -> list[dict[str, Any]]:
    live, excluded = set(status.hosts), set(status.excluded_hosts)
    used = {str(place) for place in map(_place, status.containers) if place}
    shown = used | live if len(used | live) <= _MOST_HOSTS else used
    return [{"host": host, "state": _state_of(host, live, excluded)} for host in sorted(shown)]


def _state_of(host: str, live: Collection[str], excluded: Collection[str]) -> str:
    if host in excluded:
        return "not requested"
    return "live" if host in live or not live else "lost"


def _place(container: ShownContainer) -> str | None:
    return container.host or container.requested_host or container.last_host or None


def _container(container: ShownContainer, plots: Plots) -> dict[str, Any]:
    report, name = container.report or ContainerReport(), container.processor_id
    newest = plots.newest(name)
    epoch = container.epoch or 0
    return {
        "id": name,
        "of": container.replica_of,
        "place": _place(container),
        "is_there": bool(container.host),
        "phase": container.phase.value,
        "since_ms": container.since_ms or 0,
        "epoch": epoch,
        "version": container.model_version,
        "lag": container.lag if container.is_standby else report.input_lag,
        "lag_s": container.lag_seconds,
        "lag_left_s": plots.caught_up_in_s(name),
        "processed": report.processed,
        "records_per_s": newest["records_per_s"],
        "batch_ms": newest["batch_ms"],
        "commit_ms": newest["commit_ms"],
        "failures": container.failures or 0,
        "last_failure": container.last_failure,
        "restore": _restore(report),
        "resource": container.resource,
        "log": f"container-{name}-{epoch}.log" if container.resource and epoch else None,
        "log_url": container.log_url,
        "leads": container.is_leader,
        "keeps": kept_standbys(container),
    }


def _restore(report: ContainerReport) -> dict[str, Any] | None:
    stores = report.restoring
    if not stores:
        return None
    records = sum(store.records for store in stores)
    remaining = sum(store.remaining for store in stores)
    return {
        "stores": len(stores),
        "done": records / (records + remaining) if records + remaining else 0.0,
        "remaining": remaining,
        "left_s": seconds_left(report),
    }


def configuration(
    config: Mapping[str, str], written: Mapping[str, CoordinatorStreamMessage] | None
) -> dict[str, Any]:
    """Return the body of ``GET /ui/configuration``.

    Args:
        config: the configuration in force.
        written: {key: its newest record in the coordinator stream}; None: the job has no stream,
            because each processor reads its own file.

    Keys are sorted. ``source`` and the fields after it are None for a key without a record.
    """
    return {"in_stream": written is not None, "keys": list(_keys(config, written or {}))}


def _keys(
    config: Mapping[str, str], written: Mapping[str, CoordinatorStreamMessage]
) -> Iterable[dict[str, Any]]:
    for key, value in sorted(config.items()):
        record = written.get(key)
        yield {
            "key": key,
            "value": shown_value(key, value),
            "source": record and record.source,
            "user": record and record.username,
            "host": record and record.host,
            "at_ms": record and record.timestamp_ms,
        }
