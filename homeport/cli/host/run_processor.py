"""``homeport run-processor``: one standalone processor of a job, until it is stopped."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from homeport.cli.options import ConfigPath, Overrides, loaded, new_app, note
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

app = new_app("Runs one processor of a job; processors of one job share its tasks by ZooKeeper.")


@app.command()
def command(
    config_path: ConfigPath,
    config: Overrides = None,
    processor_id: Annotated[
        str | None,
        typer.Option(
            "--processor-id",
            help="Of its own in the job; default processor.id, else one that is made.",
        ),
    ] = None,
    work_dir: WorkDir = None,
) -> None:
    """Until SIGTERM or SIGINT; then it commits, closes its stores, and leaves."""
    job = loaded(config_path, config, topics_of)
    run(StreamProcessor(job, processor_id, work_dir))


def run(processor: StreamProcessor) -> None:
    """Runs the processor to its end; a signal stops it in order.

    Raises:
        HomeportError: it has failed.
    """
    logs.begin(sys.stderr, processor.log_variables)
    for warning in processor.warnings:
        note(f"warning: {warning}")

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        processor.stop()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    processor.start()
    note(f"processor {processor.processor_id} at {processor.location}, logs {processor.work_dir}")
    note(f"it answers at {processor.url}")
    processor.join()
    note(f"processor {processor.processor_id} has ended")
