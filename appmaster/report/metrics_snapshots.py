"""Snapshots of a job's metrics in the form of Samza's MetricsSnapshotReporter. PURE.

The AM and each container have one, as the JSON of Samza's MetricsSnapshotSerde (not its V2, which
has names of Java classes): ``header`` and ``metrics``, {group: {name: value}}. Samza's metrics have
Samza's groups and names; those of the job's own are in the group ``job``, all others in the group
``homeport``. Both have the values of their labels behind the name.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import Metric

from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.own_metrics import PREFIX
from homeport.job_coordinator.status.shape import Phase, ShownContainer

_OWN: Final = "homeport"
_JOB: Final = "job"
_CONTAINER: Final = "org.apache.samza.container.SamzaContainerMetrics"
_AM: Final = "ApplicationMaster"
_MIB: Final = 1024 * 1024
_NS_PER_MS: Final = 1_000_000

Groups = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Origin:
    """The AM of the snapshots. ``began_ms``: its driver's begin; ``resource``: its container."""

    job_name: str
    job_id: str
    resource: str
    host: str
    version: str
    began_ms: int


def snapshots(
    origin: Origin, families: Iterable[Metric], containers: Iterable[ShownContainer], now_ms: int
) -> list[bytes]:
    """Return the AM's snapshot, then those of running containers, in the order of the status."""
    of_job, of_processors = _by_processor(families)
    found = [_snapshot(origin, _AM, origin.resource, origin.host, origin.began_ms, now_ms, of_job)]
    for container in containers:
        name = container.processor_id
        groups = {_CONTAINER: _of_container(container), _OWN: of_processors.get(name, {})}
        if container.report is not None and container.report.own:
            groups[_JOB] = {
                "-".join([sample, *dict(each.labels).values()]): value
                for each in container.report.own
                for sample, value in each.samples()
            }
        if container.resource:
            place = (f"samza-container-{name}", container.resource, container.host or "")
            found.append(_snapshot(origin, *place, container.since_ms or 0, now_ms, groups))
    return found


def _snapshot(
    origin: Origin, whose: str, resource: str, host: str, reset_ms: int, now_ms: int, groups: Groups
) -> bytes:
    header = {
        "job-name": origin.job_name,
        "job-id": origin.job_id,
        "container-name": whose,
        "exec-env-container-id": resource,
        "source": whose,
        "version": origin.version,
        "samza-version": f"homeport-{origin.version}",
        "host": host,
        "time": now_ms,
        "reset-time": reset_ms,
    }
    return json.dumps({"header": header, "metrics": groups}).encode()


def _by_processor(families: Iterable[Metric]) -> tuple[Groups, dict[str, dict[str, float]]]:
    """Return the job's metrics by group, and {processor: {name: value}}, without buckets."""
    of_job: Groups = defaultdict(dict)
    of_processors: dict[str, dict[str, float]] = defaultdict(dict)
    for family in families:
        for sample in () if family.name.startswith(PREFIX) else family.samples:
            if sample.name.endswith(("_bucket", "_created")):
                continue
            labels = dict(sample.labels)
            processor = labels.pop("processor", None)
            name = "-".join([sample.name.removeprefix("homeport_"), *labels.values()])
            if processor is not None:
                of_processors[processor][name] = sample.value
            elif family.name.startswith("samza_"):
                group, _, rest = family.documentation.partition(" ")
                of_job[group][rest.partition(". ")[0]] = sample.value
            else:
                of_job[_OWN][name] = sample.value
    return dict(of_job), dict(of_processors)


def _of_container(container: ShownContainer) -> dict[str, float]:
    """Return those metrics of Samza's containers that our containers report.

    Times are means since the container's beginning, in ns.
    """
    report = container.report or ContainerReport()
    found = {"container-running": float(container.phase is Phase.RUNNING)}
    if report.processed is not None:
        found["process-envelopes"] = report.processed
    for stage in report.stages:
        name = {"tasks": "process", "sending": "commit"}.get(stage.stage)
        if name is not None and stage.times:
            found[f"{name}-calls"] = stage.times
            found[f"{name}-ns"] = round(stage.ms * _NS_PER_MS / stage.times)
    used = [sample.value for sample in report.figures if sample.name == "memory_bytes"]
    if used:
        found["physical-memory-mb"] = round(sum(used) / _MIB, 1)
    return found
