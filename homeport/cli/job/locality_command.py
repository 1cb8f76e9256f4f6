"""``homeport locality``: where containers and tasks last ran."""

from __future__ import annotations

from typing import Annotated

import typer

from homeport.cli.formatting import table
from homeport.cli.job.job_view import JobView, OpenJob
from homeport.cli.options import AsJson, new_app, note_origin, print_answer
from homeport.job_coordinator.metadata.locality import LocalityManager
from homeport.job_coordinator.model.locality_model import LocalityModel, encode_locality

app = new_app()


@app.command()
def locality(
    *,
    job: OpenJob,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Hosts of tasks instead; always the stream's.")
    ] = False,
    as_json: AsJson = False,
) -> None:
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
    model = _model(job)
    note_origin(job.origin)
    if as_json:
        print(encode_locality(model).decode())
        return
    known = model.processor_localities.items()
    rows = [(str(processor), str(where.host or "unknown")) for processor, where in known]
    print_answer(None, table([("processor", "host"), *rows]), as_json=False)


def _model(job: JobView) -> LocalityModel:
    if job.running is not None:
        return job.running.client.locality()
    return LocalityModel.of(LocalityManager(job.stream).read_processors())
