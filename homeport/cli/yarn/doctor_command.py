"""``homeport doctor``: what of this machine, Kafka, YARN and ZooKeeper is not fit for a job."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from homeport.appmaster.doctor.finding import exit_code, lines
from homeport.cli.options import AsJson, Overrides, loaded, new_app, note
from homeport.cli.yarn.doctor_areas import Area, NodeQuestion, findings
from homeport.config.config import Config
from homeport.config.printable import printable_lines
from homeport.config.settings.validation import validate
from homeport.job_coordinator.kafka.topics import topics_of
from homeport.job_coordinator.model.wire_form import json_text

app = new_app()


@app.command()
def doctor(
    *,
    config_path: Annotated[
        str | None,
        typer.Option("--config-path", help="The job's properties file: a path or a file: URL."),
    ] = None,
    config: Overrides = None,
    only: Annotated[
        list[Area] | None, typer.Option("--only", help="Only this area; may be given many times.")
    ] = None,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe/--no-probe", help="Run a container of 256 MB on each node to look at it."
        ),
    ] = True,
    free_mb: Annotated[
        int, typer.Option("--free-mb", min=1, help="Disk space each node's state needs, in MB.")
    ] = 1024,
    probe_limit: Annotated[
        float, typer.Option("--probe-limit", min=1, help="Seconds until all nodes must answer.")
    ] = 60.0,
    shows_ok: Annotated[bool, typer.Option("--all", help="Print what is in order, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Checks Java, Python, Kafka, YARN or ZooKeeper, nodes and clocks, and prints what to change.

    Without --config-path it looks at this machine, and at the cluster that HADOOP_CONF_DIR names.
    With it, at all that the job uses: its topics, its queue, the disks of its state; of a
    standalone job ZooKeeper, by a node that is made and removed. Nothing else is
    changed. Exit code 1: a job would not run, or would lose what it has; warnings leave it at 0.
    """
    given = None if config_path is None else _valid(config_path, config)
    areas = frozenset(only or Area) - (frozenset() if probe else {Area.NODES})
    found = list(findings(areas, given, NodeQuestion(free_mb, probe_limit), note))
    if as_json:
        print(json_text(found))
    else:
        print(printable_lines(lines(found, shows_ok=shows_ok)))
    sys.stdout.flush()
    if exit_code(found):
        sys.exit(1)


def _valid(config_path: str, overrides: list[str] | None) -> Config:
    """The job's configuration, which breaks no rule; ConfigError where it does."""
    config = loaded(config_path, overrides, topics_of)
    for warning in validate(config):
        note(f"warning: {warning}")
    return config
