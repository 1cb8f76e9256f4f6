"""``python -m homeport.cli.host.check_classes``: can a container use the job's classes?

Run by run-job in a process of its own, with the job's interpreter and the job's code on PYTHONPATH,
so that it also finds an interpreter without homeport.
"""

import sys
from collections.abc import Collection
from typing import TextIO

import msgspec

from homeport.cli.host.class_question import NEW_FORM, Question
from homeport.cli.job.check_job_model import exit_code
from homeport.config.settings.input_serdes import serde_of_columns
from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask
from homeport.container.classes import (
    load_columns,
    load_extractor_factory,
    load_manager_factory,
    load_serde,
    load_task_class,
    require_single_calls,
    warnings_of_job,
    with_classes,
)
from homeport.container.serde.evolution.readable import StoreSerdes, require_readable, writers_of
from homeport.container.serde.forms import shown
from homeport.container.spark.frame_columns import value_columns
from homeport.container.spark.inputs import Takes, stream_names
from homeport.container.spark.jvm import require_taken
from homeport.container.spark.work import function_work
from homeport.job_coordinator.metadata.state_facts import StoreSchemas


def main(given: TextIO = sys.stdin) -> int:
    """Return 0 and print ``CHECKED`` if the ``Question`` has no fault; else 1, a line on stderr."""
    question = msgspec.json.decode(given.read(), type=Question)
    with warnings_of_job() as warnings:
        return exit_code(lambda: _check(question, warnings))


def _check(asked: Question, warnings: Collection[str]) -> None:
    takes: Takes | None = None
    gets_batches = False
    streams = [stream for name in asked.streams if (stream := SystemStream.parse(name)) is not None]
    if asked.task_class:
        task_class = load_task_class(asked.task_class, streams, has_pipeline=asked.has_pipeline)
        require_single_calls(task_class, asked.max_concurrency, asked.lateness_ms)
        gets_batches = issubclass(task_class, BatchTask)
    if asked.pipeline:
        takes = function_work(asked.pipeline, stream_names(streams), asked.adjuncts).takes
    if asked.java_options:
        require_taken(asked.java_options)
    for key, serde, topic in asked.serdes:
        load_serde(key, serde, topic)
    _check_stores(asked)
    for key, name in asked.extractors:
        load_extractor_factory(key, name)
    if asked.manager is not None:
        load_manager_factory(asked.manager)
    _check_columns(asked, takes, gets_batches=gets_batches)
    for line in warnings:
        print(f"\nnote: {line}")


def _check_stores(asked: Question) -> None:
    """Require that each store is read; print the form of its values where that is a further one."""
    for topic, serde, key, written in asked.repartitions:
        require_readable(StoreSerdes(topic, serde, "bytes", repartition=key), written)
    for name, serdes, forms in asked.stores:
        recorded = asked.schemas.get(name) or (None if forms is None else StoreSchemas(forms))
        found = require_readable(
            StoreSerdes(name, *serdes), recorded, has_way_back=asked.has_way_back
        )
        form = shown(found.msg)
        if recorded is not None and form not in map(shown, writers_of(recorded)):
            print(f"\n{NEW_FORM}{name} {form}")


def _check_columns(asked: Question, takes: Takes | None, *, gets_batches: bool) -> None:
    """Require one schema of all that comes in a column; ``takes``: the frames of a function."""
    inputs = with_classes(asked.inputs)
    if takes is not None:
        value_columns(inputs, takes)
    elif asked.has_pipeline:  # of SQL: its frames are known when its text is
        for item in inputs:
            if item.has_schema:
                load_columns(item)
    elif gets_batches:
        found = serde_of_columns(inputs)
        if found is not None:
            load_columns(found)


if __name__ == "__main__":
    sys.exit(main())
