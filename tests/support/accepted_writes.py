"""What the broker has accepted of a job, from its own log: the writer of each batch.

For jobs of ``probe_task:Reports``: they write output, changelog and checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

from producer_ids import Batch, batches_in, transactional_ids, trespasses
from yarn_jobs import PARTITIONS, Job

from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id


def writers_of(job: Job, epochs: Mapping[str, int]) -> dict[int, Incarnation]:
    """{producer id: the incarnation of the job that has it}, by the broker's word.

    Shapes: ``epochs`` {processor: its last epoch}.
    """
    known = {
        transactional_id(job.name, "1", incarnation): incarnation
        for p, last in epochs.items()
        for incarnation in (Incarnation(ProcessorId(p), e) for e in range(1, last + 1))
    }
    found = transactional_ids(job.servers)
    return {producer: known[name] for producer, name in found.items() if name in known}


def accepted_batches(job: Job) -> dict[str, list[Batch]]:
    """All batches of output, changelog and checkpoint topic: {topic-partition: its batches}."""
    topics = {
        f"{job.name}-out": PARTITIONS,
        f"{job.name}-counts": PARTITIONS,
        f"__samza_checkpoint_ver_1_for_{job.name}_1": 1,
    }
    logs = job.cluster.broker_data()
    return {f"{t}-{p}": batches_in(logs, t, p) for t, n in topics.items() for p in range(n)}


def accepted_trespasses(job: Job, epochs: Mapping[str, int]) -> dict[str, list[str]]:
    """{topic-partition: what no zombie must have written there}; empty where all is well."""
    writers = writers_of(job, epochs)
    found = {place: trespasses(b, writers) for place, b in accepted_batches(job).items()}
    return {place: faults for place, faults in found.items() if faults}
