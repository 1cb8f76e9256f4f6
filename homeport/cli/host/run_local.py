"""``homeport run-local``: a whole job in one processor, without YARN and ZooKeeper."""

from __future__ import annotations

import logging
import re
from typing import Annotated

import typer

from homeport.cli.host.run_processor import WorkDir, run
from homeport.cli.options import ConfigPath, Overrides, loaded, new_app
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.container.standalone import coordination
from homeport.container.standalone.stream_processor import StreamProcessor
from homeport.job_coordinator.kafka.topics import topics_of

app = new_app("Runs a whole job on this machine, with the same stores, commits and exactness.")

_CHANGELOG = re.compile(r"stores\.[^.]+\.changelog")
_MARK = "-trial"


@app.command()
def command(
    config_path: ConfigPath,
    config: Overrides = None,
    work_dir: WorkDir = None,
    *,
    trial: Annotated[
        bool,
        typer.Option(
            "--trial",
            help="Under another job.id and with other changelogs, so that the job itself has not "
            "run, and run-job can run it. It reads the same inputs and writes the same outputs.",
        ),
    ] = False,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Go on though the folder of the job's last processor is lost: what is left of "
            "that one is fenced, and its stores are read from their changelogs.",
        ),
    ] = False,
) -> None:
    """Until SIGTERM or SIGINT, or until every task has finished.

    With --config=job.drain=true that is when it has processed what its inputs hold.
    """
    given = loaded(config_path, config, topics_of)
    job = as_trial(given) if trial else given
    # What a processor says of its agreement with others matters where there are some.
    logging.getLogger(coordination.__name__).setLevel(logging.WARNING)
    run(StreamProcessor(job, None, work_dir, is_local=True, adopts=adopt))


def as_trial(config: Config) -> Config:
    """The job by another id, with changelogs of that id's own; all else is the same."""
    others = {key: f"{topic}{_MARK}" for key, topic in config.items() if _CHANGELOG.fullmatch(key)}
    job_id = f"{keys.JOB_ID.read(config)}{_MARK}"
    return config.merged({**others, keys.JOB_ID.name: job_id})
