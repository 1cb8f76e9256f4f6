"""COORD, benefit 1: the coordinator stream "removes the size-bound on the Job configuration"."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Callable

import pytest
from yarn_jobs import Job, wait_for

OWN_KEYS = 20_000
VALUE_BYTES = 400


@pytest.mark.long
def test_twenty_thousand_keys_and_eight_megabytes_work_from_end_to_end(
    make_job: Callable[[str], Job],
) -> None:
    """Submission, AM, HTTP, containers, and a driver that starts again; the result is exact.

    None of it goes by command line, environment or a message of YARN's or Skein's. Half of the keys
    belong to the coordinator's own system, which the AM must know before it can read the stream.
    """
    job = make_job("wide")
    job.values |= {
        f"my.table.{n}" if n % 2 else f"systems.kafka.streams.s{n}.note": str(n).ljust(
            VALUE_BYTES, "x"
        )
        for n in range(OWN_KEYS)
    }
    before = job.begin(600)
    job.expects(600)
    with urllib.request.urlopen(job.url, timeout=30) as answer:  # noqa: S310 - ours
        body = answer.read()
    config = json.loads(body)["config"]
    assert len(body) > 8_000_000
    assert {key: config.get(key) for key in job.values} == job.values

    driver = job.kill_driver()
    wait_for(lambda: job.program("application_master") not in {driver, None}, job)
    os.kill(before["1"], signal.SIGKILL)
    wait_for(lambda: job.containers()["1"]["epoch"] == 2, job)
    after = job.settled()
    assert {p: after[p] for p in "02"} == {p: before[p] for p in "02"}
    job.produce(100, first=600)
    job.expects(700)
    job.end()
