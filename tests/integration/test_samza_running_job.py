"""The published classes of Apache Samza 1.8.0 beside a job that runs on YARN."""

from __future__ import annotations

import json
from collections.abc import Callable

from samza_peer import SamzaPeer
from samza_streams import READ_COMMITTED
from yarn_jobs import Job


def test_samza_sees_what_a_running_job_says(
    make_job: Callable[[str], Job], samza: SamzaPeer
) -> None:
    """Stream and URL of the AM say the same to Samza's managers and to its container.

    JobModel, configuration, assignment, modes, inputs, changelog partitions, localities; and what
    Samza's older reader makes of the configuration.
    """
    job = make_job("seen_by.samza")
    job.produce(60)
    job.run()
    containers = job.wait_until_running()
    model = json.loads(samza.ask("job-model-at", job.url))
    tasks = {
        name: (processor_id, task)
        for processor_id, container in model["containers"].items()
        for name, task in container["tasks"].items()
    }
    servers = {"systems.kafka.producer.bootstrap.servers": job.servers}
    samza.open({**job.values, **servers, **READ_COMMITTED})
    said = samza.ask("managers")
    # the address of the AM goes to the stream when it answers, as Samza has it
    config = {**model["config"], "yarn.am.tracking.url": job.url}
    assert said["config"] == config
    assert said["assignment"] == {name: processor_id for name, (processor_id, _) in tasks.items()}
    assert said["modes"] == {name: task["task-mode"] for name, (_, task) in tasks.items()}
    assert said["changelog"] == {n: task["changelog-partition"] for n, (_, task) in tasks.items()}
    inputs: dict[str, list[str]] = {}
    for name, (_, task) in sorted(tasks.items()):
        for ssp in task["system-stream-partitions"]:
            inputs.setdefault(json.dumps(ssp, separators=(",", ":")), []).append(name)
    assert said["partitions"] == inputs
    assert said["locality"] == {id_: c["host"] for id_, c in containers.items()}
    served = json.loads(samza.ask("locality-model", samza.ask("text-at", f"{job.url}locality")))
    hosts = {id_: found["host"] for id_, found in served["processor-localities"].items()}
    assert hosts == said["locality"]
    assert samza.ask("bootstrapped", [])["config"] == config
    for container in containers.values():
        assert samza.ask("is-alive", [job.url, container["resource"]]) is True
    job.kill()
