"""``homeport doctor``: what of this machine, Kafka, YARN and ZooKeeper is not fit for a job."""

import sys

import typer

from homeport.appmaster.doctor.finding import exit_code, lines
from homeport.cli.options import (
    AsJson,
    Overrides,
    described,
    loaded,
    new_app,
    note,
    print_answer,
    warn,
)
from homeport.cli.yarn.doctor_areas import Area, NodeQuestion, findings
from homeport.config.config import Config
from homeport.config.settings.validation import validate
from homeport.job_coordinator.kafka.topics import topics_of

app = new_app()


@app.command()
@described(
    config_path="The job's properties file: a path or a file: URL.",
    only="Only this area; may be given many times.",
    probe=typer.Option(
        "--probe/--no-probe", help="Run a container of 256 MB on each node to look at it."
    ),
    free_mb=typer.Option(min=1, help="Disk space each node's state needs, in MB."),
    probe_limit=typer.Option(min=1, help="Seconds until all nodes must answer."),
    shows_ok=typer.Option("--all", help="Print what is in order, too."),
)
def doctor(
    *,
    config_path: str | None = None,
    config: Overrides = None,
    only: list[Area] | None = None,
    probe: bool = True,
    free_mb: int = 1024,
    probe_limit: float = 60.0,
    shows_ok: bool = False,
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
    print_answer(found, lines(found, shows_ok=shows_ok), as_json=as_json)
    sys.stdout.flush()
    if exit_code(found):
        sys.exit(1)


def _valid(config_path: str, overrides: list[str] | None) -> Config:
    config = loaded(config_path, overrides, topics_of)
    warn(validate(config))
    return config
