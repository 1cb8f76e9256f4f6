"""``python -m homeport.cli.host.check_classes``: can a container use the job's classes?

Run by run-job in a process of its own, with the job's interpreter and the job's code on PYTHONPATH,
so that it also finds an interpreter without homeport.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from homeport.cli.job.check_job_model import exit_code
from homeport.config.settings.input_serdes import InputSerde, serde_of_columns
from homeport.config.settings.serde_names import ConfiguredSerde
from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask
from homeport.container.classes import (
    load_columns,
    load_extractor_factory,
    load_manager_factory,
    load_serde,
    load_task_class,
    require_single_calls,
)
from homeport.container.serde.forms import require_readable
from homeport.container.spark.frame_columns import value_columns
from homeport.container.spark.inputs import Takes, stream_names
from homeport.container.spark.jvm import require_taken
from homeport.container.spark.work import FunctionWork
from homeport.job_coordinator.metadata.state_facts import StoreForms

_Store = tuple[str, tuple[ConfiguredSerde, ConfiguredSerde], StoreForms | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 and print ``CHECKED`` if all named classes are usable; else 1, a line on stderr."""
    parser = argparse.ArgumentParser(prog="check_classes", description=__doc__)
    parser.add_argument("--task-class", metavar="MODULE:CLASS")
    parser.add_argument("--max-concurrency", metavar="CALLS", type=int, default=1)
    parser.add_argument("--pipeline", metavar="MODULE:FUNCTION")
    parser.add_argument("--input", metavar="SYSTEM.STREAM", action="append", default=[])
    parser.add_argument("--store", metavar="NAME", action="append", default=[])
    parser.add_argument(
        "--more", action="store_true", help="standard input has what may hold secrets, as JSON"
    )
    given = parser.parse_args(arguments)
    return exit_code(lambda: _check(given))


def _check(given: argparse.Namespace) -> None:
    takes: Takes | None = None
    gets_batches = False
    if given.task_class:
        task_class = load_task_class(given.task_class)
        require_single_calls(task_class, given.max_concurrency)
        gets_batches = issubclass(task_class, BatchTask)
    if given.pipeline:
        inputs = (SystemStream.parse(name) for name in given.input)
        names = stream_names(stream for stream in inputs if stream is not None)
        takes = FunctionWork.load(given.pipeline, names, given.store).takes
    if given.more:
        _check_more(json.load(sys.stdin), takes, gets_batches=gets_batches)


def _check_more(asked: Mapping[str, Any], takes: Takes | None, *, gets_batches: bool) -> None:
    """Raises HomeportError for the first fault.

    ``asked``: ``java-options`` of the job's Spark; ``serdes``, each (key, name, stream, which is
    empty for a store's); ``stores``, each (name, its two serdes, recorded forms or None);
    ``extractors``, each (key, name); ``manager`` of adjunct stores, or None;
    ``inputs``, each as ``InputSerde``; ``has-pipeline``. ``takes``: the frames of a pipeline that
    is a function. ``gets_batches``: of the task.
    """
    if asked["java-options"]:
        require_taken(asked["java-options"])
    serdes = msgspec.convert(asked["serdes"], list[tuple[str, ConfiguredSerde, str]])
    for key, serde, stream in serdes:
        load_serde(key, serde, stream)
    for store, of_store, recorded in msgspec.convert(asked.get("stores", ()), list[_Store]):
        require_readable(store, of_store, recorded)
    for key, name in asked["extractors"]:
        load_extractor_factory(key, name)
    if asked["manager"] is not None:
        load_manager_factory(asked["manager"])
    inputs = msgspec.convert(asked["inputs"], list[InputSerde])
    _check_columns(inputs, takes, has_pipeline=asked["has-pipeline"], gets_batches=gets_batches)


def _check_columns(
    inputs: Sequence[InputSerde], takes: Takes | None, *, has_pipeline: bool, gets_batches: bool
) -> None:
    if takes is not None:
        value_columns(inputs, takes)
    elif has_pipeline:  # of SQL: its frames are known when its text is
        for item in inputs:
            if item.has_schema:
                load_columns(item)
    elif gets_batches:
        found = serde_of_columns(inputs)
        if found is not None:
            load_columns(found)


if __name__ == "__main__":
    sys.exit(main())
