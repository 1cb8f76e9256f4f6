"""``homeport job-model`` and ``locality``: which container has which tasks, and where they ran."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer
from msgspec import Struct

from homeport.cli.formatting import table
from homeport.cli.job.job_view import JobView, OpenJob
from homeport.cli.options import AsJson, ShowSecrets, described, new_app, note_origin, print_answer
from homeport.config.errors import ConfigError
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.codec import encode_job_model, encode_locality
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskMode
from homeport.job_coordinator.model.wire_form import about

app = new_app()
locality_app = new_app()


class _ShownTasks(Struct):
    tasks: Annotated[Mapping[str, Any], about("its tasks, by their names")]


class ShownJobModel(Struct, rename="kebab"):
    """A JobModel in Samza's form, which ``codec`` writes."""

    config: Annotated[
        Mapping[str, Annotated[str, about("the value of a key")]], about("all keys, secrets masked")
    ]
    containers: Annotated[
        Mapping[str, Annotated[_ShownTasks, about("a container")]], about("by the processor id")
    ]
    max_change_log_stream_partitions: Annotated[int, about("partitions that a changelog has")]


@app.command()
@described(
    version=typer.Option(
        min=1, help="An earlier version, of a running job; default the present one."
    ),
    processor="One container's part alone.",
)
def job_model(
    *,
    job: OpenJob,
    version: int | None = None,
    processor: str | None = None,
    as_json: AsJson = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Prints a job's JobModel: the running job's, else what the coordinator stream has recorded.

    --json prints it as GET / does, with the configuration.
    """
    number, model = _model(job, version)
    note_origin(job.origin)
    model = replace(model, config=job.config(show_secrets=show_secrets))
    if processor is not None:
        model = _part(model, processor)
    if as_json:
        print(encode_job_model(model, mask_secrets=not show_secrets).decode())
        return
    for line in _lines(model, number):
        print(line)


def _model(job: JobView, version: int | None) -> tuple[int, JobModel]:
    if job.running is not None:
        number = job.running.model_version if version is None else version
        return number, job.running.client.job_model(version)
    recorded = EpochManager(job.stream).read_job_model_version()
    if recorded is None:
        raise ConfigError("--config-path", job.topic, "the job has no JobModel yet", "run it")
    if version not in {None, recorded.version}:
        rule = f"the job does not run, and its stream has version {recorded.version} alone"
        raise ConfigError("--version", str(version), rule, "leave the option out")
    return recorded.version, recorded_model(job.stream, job.recorded_config())


def _part(model: JobModel, processor: str) -> JobModel:
    container = model.containers.get(ProcessorId(processor))
    if container is None:
        known = ", ".join(model.containers) or "none"
        raise ConfigError("--processor", processor, f"the job has {known}", "name one of these")
    return replace(model, containers={container.processor_id: container})


def _lines(model: JobModel, version: int) -> Iterator[str]:
    tasks = sum(len(container.tasks) for container in model.containers.values())
    yield f"version {version}: {len(model.containers)} containers, {tasks} tasks"
    for container in model.containers.values():
        yield f"processor {container.processor_id}{_role(container)}"
        for task in container.tasks.values():
            mode = "" if task.task_mode is TaskMode.ACTIVE else " (standby)"
            inputs = ", ".join(
                f"{ssp.system_stream}#{ssp.partition}" for ssp in task.system_stream_partitions
            )
            yield f"  {task.task_name}{mode}: changelog {task.changelog_partition}; {inputs}"


def _role(container: ContainerModel) -> str:
    active = container.active_processor
    return "" if active is None else f", standby of {active}"


@locality_app.command()
@described(tasks="Hosts of tasks instead; always the stream's.")
def locality(*, job: OpenJob, tasks: bool = False, as_json: AsJson = False) -> None:
    """Prints the host on which each container last started successfully.

    That is the running job's word, else the coordinator stream's. --json prints it as GET /locality
    does; of tasks an object {task: host}.
    """
    if tasks:
        note_origin(f"the coordinator stream {job.topic}")
        found = LocalityManager(job.stream).read_tasks()
        hosts = {str(task): str(host) for task, host in sorted(found.items())}
        print_answer(hosts, table([("task", "host"), *hosts.items()]), as_json=as_json)
        return
    known = _locality(job)
    note_origin(job.origin)
    if as_json:
        print(encode_locality(known).decode())
        return
    rows = [(str(processor), str(host or "unknown")) for processor, host in sorted(known.items())]
    print_answer(None, table([("processor", "host"), *rows]), as_json=False)


def _locality(job: JobView) -> Mapping[ProcessorId, Host | None]:
    if job.running is not None:
        return job.running.client.locality()
    return LocalityManager(job.stream).read_processors()
