"""A container's end of what hangs, alone: it stands still after a step of it, or dies there.

``python -m healing_container FOLDER``: of the job whose keys are in FOLDER/config.json; a file
named by the environment says after which of Kafka's answers something happens, and what, as for
``stopped_container``. It prints what a container would end with.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from stopped_container import PLAN_VARIABLE, at_each_step

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import JobConfig
from homeport.config.system_stream import SystemStream
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation.hanging_transactions import ending_what_hangs
from homeport.container.kafka.client_properties import HangingTransactionError
from homeport.container.kafka.transactions_in_kafka import TransactionsInKafka
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.model.ids import ProcessorId

STEPS = ("held", "ends", "first_batch", "fence", "write_marker")
"""Each is a request to Kafka; with the number of that request, from 1."""


def _watched(name: str, reached: Callable[[object], None]) -> Callable[..., object]:
    ask = getattr(TransactionsInKafka, name)
    count = 0

    def asked(*arguments: object) -> object:
        nonlocal count
        answer = ask(*arguments)
        count += 1
        reached(f"{name} {count}")
        return answer

    return asked


def main(folder: Path) -> None:
    """What hangs in the job's changelog and checkpoints is ended."""
    config = Config(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    reached = at_each_step(Path(os.environ[PLAN_VARIABLE]))
    for name in STEPS:
        setattr(TransactionsInKafka, name, _watched(name, reached))
    inputs = {SystemStream("kafka", f"{config['job.name']}-in"): 2}
    job = ContainerJob.of(calculate_job_model(config, inputs, NOTHING), ProcessorId("0"))
    topic = JobConfig.of(config).coordinator_topic
    stream = CoordinatorStreamStore(job.transaction_system, topic, source="healer")
    stream.bootstrap()
    try:
        with ending_what_hangs(job, stream, time.sleep):
            raise HangingTransactionError("met")
    except UnavailableError as error:
        sys.stdout.write(f"{error}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
