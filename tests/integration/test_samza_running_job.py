"""The published classes of Apache Samza 1.8.0 beside a job that runs on YARN."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

from samza_peer import SamzaPeer
from samza_streams import READ_COMMITTED
from yarn_jobs import Job, wait_for

_COUNT = "job.container.count"


def _said(job: Job, samza: SamzaPeer) -> dict[str, Any]:
    servers = {"systems.kafka.producer.bootstrap.servers": job.servers}
    samza.open({**job.values, **servers, **READ_COMMITTED})
    found: dict[str, Any] = samza.ask("managers")
    return found


def _agree(job: Job, samza: SamzaPeer) -> None:
    model = json.loads(samza.ask("job-model-at", job.url))
    tasks = {
        name: (processor_id, task)
        for processor_id, container in model["containers"].items()
        for name, task in container["tasks"].items()
    }
    answer = _said(job, samza)
    # the address of the AM goes to the stream when it answers, as Samza has it
    config = {**model["config"], "yarn.am.tracking.url": job.url}
    assert answer["config"] == config
    assert samza.ask("bootstrapped", [])["config"] == config
    assert answer["assignment"] == {name: processor_id for name, (processor_id, _) in tasks.items()}
    assert answer["modes"] == {name: task["task-mode"] for name, (_, task) in tasks.items()}
    assert answer["changelog"] == {n: task["changelog-partition"] for n, (_, task) in tasks.items()}
    inputs: dict[str, list[str]] = {}
    for name, (_, task) in sorted(tasks.items()):
        for ssp in task["system-stream-partitions"]:
            inputs.setdefault(json.dumps(ssp, separators=(",", ":")), []).append(name)
    assert answer["partitions"] == inputs
    containers = job.containers()
    assert answer["locality"] == {id_: c["host"] for id_, c in containers.items()}
    # the AM serves what it last read of the stream, which it reads at an interval
    wait_for(lambda: _served_hosts(job, samza) == answer["locality"], job)
    for container in containers.values():
        assert samza.ask("is-alive", [job.url, container["resource"]]) is True


def _served_hosts(job: Job, samza: SamzaPeer) -> dict[str, str]:
    """{processor: host} as Samza's container reads it at the URL of the AM."""
    served = json.loads(samza.ask("locality-model", samza.ask("text-at", f"{job.url}locality")))
    return {id_: found["host"] for id_, found in served["processor-localities"].items()}


def _runs(job: Job, count: int) -> bool:
    return len(job.get("")["containers"]) == len(job.pids()) == count


def test_samza_sees_a_running_job_and_changes_it(
    make_job: Callable[[str], Job], samza: SamzaPeer
) -> None:
    """Samza's own coordinator-stream-writer takes a job from 2 containers to 3 and to 1.

    Each time JobModel, configuration, assignment, modes, inputs, changelog partitions and
    localities are to Samza what the AM serves, though the driver is killed during each change.
    """
    job = make_job("seen_by.samza")
    job.values[_COUNT] = "2"
    job.produce(60)
    job.run()
    job.wait_until_running()
    _agree(job, samza)
    loader = "org.apache.samza.config.loaders.PropertiesConfigLoaderFactory"
    job.path.write_text(
        "".join(f"{key}={value}\n" for key, value in job.values.items())
        + f"systems.kafka.producer.bootstrap.servers={job.servers}\n"
    )
    path = f"job.config.loader.properties.path={job.path}"
    writer = ["--config", f"job.config.loader.factory={loader}", "--config", path]
    for count in ("3", "1"):
        driver = job.program("application_master")
        assert driver is not None
        wanted = ["--type", "set-config", "--key", _COUNT, "--value", count]
        samza.ask("writer-main", [*writer, *wanted])
        os.kill(driver, signal.SIGKILL)
        wait_for(lambda: _runs(job, int(count)), job)  # noqa: B023 - waited for at once
        _agree(job, samza)
    job.kill()
