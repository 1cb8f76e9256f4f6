"""``homeport locality``: where containers and tasks last ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from homeport.cli.job.job_view import JobView, open_job
from homeport.cli.options import AsJson, ConfigPath, Overrides, loaded, new_app, note
from homeport.config.printable import printable_lines
from homeport.job_coordinator.metadata.locality import LocalityManager
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.locality_model import LocalityModel, encode_locality

app = new_app()


@app.command()
def locality(
    *,
    config_path: ConfigPath,
    config: Overrides = None,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Hosts of tasks instead; always the stream's.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Prints the host on which each container last started successfully.

    That is the running job's word, else the coordinator stream's. --json prints it as GET /locality
    does; of tasks an object {task: host}.
    """
    with open_job(loaded(config_path, config)) as job:
        if tasks:
            note(f"from the coordinator stream {job.topic}")
            found = LocalityManager(job.stream).read_tasks()
            hosts = {str(task): str(host) for task, host in sorted(found.items())}
            print(compact_json(hosts).decode() if as_json else _table("task", hosts))
            return
        model = _model(job)
        note(f"from {job.origin}")
    if as_json:
        print(encode_locality(model).decode())
        return
    known = model.processor_localities.items()
    print(_table("processor", {str(p): str(where.host or "unknown") for p, where in known}))


def _model(job: JobView) -> LocalityModel:
    if job.running is not None:
        return job.running.client.locality()
    return LocalityModel.of(LocalityManager(job.stream).read_processors())


def _table(title: str, hosts: Mapping[str, str]) -> str:
    width = max(map(len, (title, *hosts)))
    rows = [(title, "host"), *hosts.items()]
    return printable_lines(f"{name:<{width}}  {host}" for name, host in rows)
