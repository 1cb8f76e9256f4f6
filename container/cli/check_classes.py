"""``python -m homeport.container.cli.check_classes``: can the job's classes be used by a container?

Run by run-job in a process of its own, with the job's interpreter and the job's code on PYTHONPATH,
so that it also finds an interpreter without homeport.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from homeport.config.errors import ConfigError
from homeport.container.classes import load_pipeline, load_serde, load_task_class
from homeport.job_coordinator.cli.check_job_model import CHECKED


def main(arguments: Sequence[str] | None = None) -> int:
    """0 and ``CHECKED`` when all named classes are usable; else 1 and one line on stderr."""
    parser = argparse.ArgumentParser(prog="check_classes", description=__doc__)
    parser.add_argument("--task-class", metavar="MODULE:CLASS")
    parser.add_argument("--pipeline", metavar="MODULE:FUNCTION")
    parser.add_argument("--serde", metavar="KEY=NAME", action="append", default=[])
    given = parser.parse_args(arguments)
    try:
        if given.task_class:
            load_task_class(given.task_class)
        if given.pipeline:
            load_pipeline(given.pipeline)
        for serde in given.serde:
            key, _, name = serde.partition("=")
            load_serde(key, name)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"\n{CHECKED}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
