"""``homeport checkpoint``: show, set."""

from collections.abc import Mapping
from typing import Annotated, Self

import typer
from msgspec import Struct

from homeport.cli.host import checkpoint_change
from homeport.cli.host.job_on_host import OneTask, OpenRecordedJob, RecordedJob, recorded_job
from homeport.cli.options import AsJson, Named, described, new_app, note_origin, print_item
from homeport.config.config import LONG_MAX
from homeport.config.errors import ConfigError
from homeport.config.settings.input_section import TIME_REMEDY, TIME_RULE, time_ms
from homeport.container.kafka.checkpoints import Checkpoint, read_whole_checkpoints
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.restore import OffsetRange
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from homeport.job_coordinator.model.wire_form import about

app = new_app("Shows how far a job has read its input, or sets it while the job does not run.")


class ShownPosition(Struct, frozen=True):
    """How far one task has read one partition."""

    task: Annotated[TaskName, about("of the checkpoint")]
    ssp: Annotated[str, about("system.stream.partition")]
    offset: Annotated[int | None, about("of the last record that is processed; null: none yet")]
    oldest: Annotated[int, about("oldest offset that Kafka has")]
    head: Annotated[int, about("offset behind the newest record")]
    lag: Annotated[int | None, about("records that are not processed")]

    @classmethod
    def of(
        cls, task: TaskName, ssp: SystemStreamPartition, processed: int | None, ends: OffsetRange
    ) -> Self:
        """Return it; the lag counts offsets up to the head: transaction markers take some."""
        oldest, head = ends.oldest, ends.head
        lag = None if processed is None else max(0, head - max(processed + 1, oldest))
        return cls(task, ssp.name, processed, oldest, head, lag)

    def shown(self) -> Self:
        """Return it for a script."""
        return self

    def __str__(self) -> str:
        ends = f"oldest {self.oldest}, head {self.head}"
        if self.offset is None:
            return f"{self.task}  {self.ssp}: no checkpoint; {ends}"
        lost = self.oldest - self.offset - 1
        gone = f", of which {lost} messages are no longer there" if lost > 0 else ""
        return (
            f"{self.task}  {self.ssp}: processed {self.offset}, next "
            f"{self.offset + 1}{gone}; {ends}, lag {self.lag}"
        )


@app.command("show", short_help="print the checkpoint of every task")
def show(*, job: OpenRecordedJob, task: OneTask = None, as_json: AsJson = False) -> None:
    """Prints, per task and input partition, the last processed offset, the head, and the lag.

    --json: one object per line.
    """
    with job.readers() as readers:
        tasks = job.chosen_tasks(task)
        note_origin(job.task.checkpoint_topic)
        for position in positions(job, tasks, readers):
            print_item(position, as_json=as_json)


def positions(
    job: RecordedJob, tasks: list[TaskModel], readers: Mapping[str, LogReader]
) -> list[ShownPosition]:
    """Return how far each of ``tasks`` has read each of its partitions.

    ConfigError: the job has no checkpoints. StoreError: one was written under another grouper.
    """
    known = checkpoints(job, tasks, readers)
    offsets = {task_name: found.offsets for task_name, found in known.items()}
    ssps = sorted({ssp for task in tasks for ssp in task.system_stream_partitions})
    ends: dict[SystemStreamPartition, OffsetRange] = {}
    for system, reader in readers.items():
        own = [ssp for ssp in ssps if ssp.system == system]
        found = reader.ends([(ssp.stream, ssp.partition) for ssp in own])
        ends.update((ssp, found[ssp.stream, ssp.partition]) for ssp in own)
    return [
        ShownPosition.of(task.task_name, ssp, offsets.get(task.task_name, {}).get(ssp), ends[ssp])
        for task in tasks
        for ssp in task.system_stream_partitions
    ]


def checkpoints(
    job: RecordedJob, tasks: list[TaskModel], readers: Mapping[str, LogReader]
) -> dict[TaskName, Checkpoint]:
    """Return those of ``tasks`` that have one; errors as of ``positions``."""
    if not job.task.checkpoint_enabled:
        remedy = "remove the key and submit the job again"
        raise ConfigError("task.checkpoint.factory", "none", "the job keeps no checkpoints", remedy)
    return read_whole_checkpoints(
        readers[job.task.checkpoint_system],
        job.task.checkpoint_topic,
        job.job.ssp_grouper_factory,
        {task.task_name for task in tasks},
        InputTopicManager(job.view.stream).floors(),
    )


@app.command("set", short_help="set where a task goes on, while the job does not run")
@described(
    task="The task's name, or its directory's.",
    ssp="Its input partition: SYSTEM.STREAM.PARTITION.",
    offset=typer.Option(
        "--offset", min=0, max=LONG_MAX, help="The next offset that it is to read."
    ),
    earliest="The oldest message that is there is the next.",
    latest="What comes from now on is the next.",
    timestamp=(
        "The first message of that time or later is the next: milliseconds since the "
        "epoch, or ISO 8601, such as 2013-07-04T12:00:00+00:00."
    ),
)
def set_(
    *,
    task: str,
    ssp: str,
    named: Named,
    offset: int | None = None,
    earliest: bool = False,
    latest: bool = False,
    timestamp: str | None = None,
) -> None:
    """Sets where a task goes on reading one of its partitions; its others stay as they are.

    Refused while the job runs, and where the task has state: a state cannot be taken back, as its
    changelog keeps each key's last value only, and a state that has seen more or less than the
    input position says is a wrong result. run-job --reset-state throws both away; the job then
    begins where samza.offset.default says. The history of the task's next container has the
    change, so that check-history knows of it.
    """
    place = checkpoint_change.Place.of(
        offset=offset, earliest=earliest, latest=latest, at_ms=milliseconds(timestamp)
    )
    with recorded_job(named.config()) as job, job.readers() as readers:
        (model,) = job.chosen_tasks(task)
        partition = chosen_partition(model, ssp)
        checkpoint_change.require_not_running(job)
        checkpoint_change.require_no_state(job, model, readers)
        next_offset = checkpoint_change.resolve(place, partition, readers[partition.system])
        before = checkpoints(job, [model], readers).get(model.task_name, Checkpoint({}))
        wanted = checkpoint_change.changed(before, partition, next_offset)
        checkpoint_change.write(job, model, wanted)
    was = before.offsets.get(partition)
    print(
        f"{model.task_name}  {partition.name}: next {next_offset}, "
        f"before {'no checkpoint' if was is None else f'next {was + 1}'}"
    )


def chosen_partition(task: TaskModel, text: str) -> SystemStreamPartition:
    """Return the input partition of ``task`` that ``text`` names; ConfigError where it has none."""
    named = {ssp.name: ssp for ssp in task.system_stream_partitions}
    if text not in named:
        rule = f"the task reads {', '.join(named) or 'nothing'}"
        raise ConfigError("--ssp", text, rule, "name one of these")
    return named[text]


def milliseconds(text: str | None) -> int | None:
    """Return the time that ``text`` names, in ms since 1970; ConfigError where it names none."""
    if text is None:
        return None
    at_ms = time_ms(text)
    if at_ms is None:
        raise ConfigError("--timestamp", text, TIME_RULE, TIME_REMEDY)
    return at_ms
