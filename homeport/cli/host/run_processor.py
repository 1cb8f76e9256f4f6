"""``homeport run-processor`` and ``run-local``: a job's processors without YARN."""

import logging
import re
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from homeport.cli.job.kafka_check import check_kafka
from homeport.cli.options import ALLOWED, FromJob, described, new_app, note, warn
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.unknown_keys import ALLOW, require_known
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.container.standalone import coordination
from homeport.container.standalone.stream_processor import StreamProcessor
from homeport.job_coordinator import logs
from homeport.job_coordinator.kafka.topics import topics_of

WorkDir = Annotated[
    Path | None,
    typer.Option(
        "--work-dir",
        help="Folder for logs and scratch files, and for state where nothing else names a place; "
        "default <job.name>-<job.id> in the working directory.",
    ),
]

Job = Annotated[Config, FromJob(lambda job: nullcontext(job.config(topics_of)))]

app = new_app("Runs one processor of a job; processors of one job share its tasks by ZooKeeper.")
local_app = new_app(
    "Runs a whole job on this machine, with the same stores, commits and exactness."
)

_CHANGELOG = re.compile(r"stores\.[^.]+\.changelog")
_MARK = "-trial"


@app.command()
@described(processor_id="Of its own in the job; default processor.id, else one that is made.")
def run_processor(job: Job, processor_id: str | None = None, work_dir: WorkDir = None) -> None:
    """Until SIGTERM or SIGINT; then it commits, closes its stores, and leaves."""
    run(StreamProcessor(job, processor_id, work_dir))


def run(processor: StreamProcessor) -> None:
    """Run the processor to its end; a signal stops it in order."""
    logs.begin(sys.stderr, processor.log_variables)
    warn(processor.warnings)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        processor.stop()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    processor.start()
    note(f"processor {processor.processor_id} at {processor.location}, logs {processor.work_dir}")
    note(f"it answers at {processor.url}")
    processor.join()
    note(f"processor {processor.processor_id} has ended")


@local_app.command()
@described(
    trial=(
        "Under another job.id and with other changelogs, so that the job itself has not "
        "run, and run-job can run it. It reads the same inputs and writes the same outputs."
    ),
    adopt=(
        "Go on though the folder of the job's last processor is lost: what is left of "
        "that one is fenced, and its stores are read from their changelogs."
    ),
    allow_unknown_keys=typer.Option(ALLOW, help=ALLOWED),
)
def run_local(
    given: Job,
    work_dir: WorkDir = None,
    *,
    trial: bool = False,
    adopt: bool = False,
    allow_unknown_keys: bool = False,
) -> None:
    """Until SIGTERM or SIGINT, or until every task has finished.

    With --config=job.drain=true that is when it has processed what its inputs hold.
    """
    if not allow_unknown_keys:
        require_known(given)
    job = as_trial(given) if trial else given
    check_kafka(job)
    # Lines about agreement with other processors matter where there are some.
    logging.getLogger(coordination.__name__).setLevel(logging.WARNING)
    if PipelineConfig.of(job) is not None:
        from homeport.container.spark import class_data  # noqa: PLC0415 - of pipelines alone

        class_data.ensure(note)
    run(StreamProcessor(job, None, work_dir, is_local=True, adopts=adopt))


def as_trial(config: Config) -> Config:
    """Return the job by another id, with changelogs of that id's own; all else is the same."""
    others = {key: f"{topic}{_MARK}" for key, topic in config.items() if _CHANGELOG.fullmatch(key)}
    job_id = f"{keys.JOB_ID.read(config)}{_MARK}"
    return config.merged({**others, keys.JOB_ID.name: job_id})
