"""``python -m homeport.cli.job.check_job_model``: do a job's own groupers group?

Run by run-job in a process of its own, with the job's interpreter and the job's code on PYTHONPATH.
Standard input is ``{"config": {key: value}, "partitions": [[system, stream, count], ...]}``:
secrets are not for arguments or environments.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import TextIO

from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.model.job_model import SystemStream

CHECKED = "checked: the job's code can be used"
"""The last line on standard output where nothing is wrong: exit code 0 may be the job's own."""


def question(config: Config, partition_counts: Mapping[SystemStream, int]) -> bytes:
    """Return what ``main`` reads, for this configuration and {stream: partitions}."""
    counts = [[s.system, s.stream, count] for s, count in partition_counts.items()]
    return json.dumps({"config": dict(config), "partitions": counts}).encode()


def exit_code(check: Callable[[], object]) -> int:
    """Return 0 and print ``CHECKED`` where ``check`` raises nothing; else 1, a line on stderr."""
    try:
        check()
    except HomeportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"\n{CHECKED}")
    return 0


def main(given: TextIO = sys.stdin) -> int:
    """Return 0 and print ``CHECKED`` if a JobModel can be made of it; else 1, a line on stderr."""
    body = json.load(given)
    counts = {SystemStream(system, stream): n for system, stream, n in body["partitions"]}
    return exit_code(lambda: calculate_job_model(Config(body["config"]), counts, NOTHING))


if __name__ == "__main__":
    sys.exit(main())
