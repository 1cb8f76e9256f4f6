"""AM attempts on a real YARN cluster: one dies, or is cut off, and the next one takes over."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from am_attempts import APPLICATION_MASTER, job_of_attempt, jvm_of, programs
from yarn_jobs import Job, alive, wait_for

FAILS_AT_STARTS = "the driver fails at every start"


def test_without_its_am_nothing_of_a_job_lives_on(make_job: Callable[[str], Job]) -> None:
    """SIGKILL of the AM: launchers and containers are gone, and YARN's next attempt goes on.

    The new attempt does not wait: each launcher has recorded in Kafka that its child has stopped.
    """
    job = make_job("orphan")
    job.produce(60)
    job.run()
    hosts = {p: c["host"] for p, c in job.wait_until_running().items()}
    first = job.attempt
    others = programs(job, ".launcher", ".container_runner")
    assert 6 <= len(others) <= 9  # a launcher and a container each, and perhaps a spare
    for pid in programs(job, APPLICATION_MASTER):
        os.kill(pid, signal.SIGKILL)
    job.produce(60, first=60)
    wait_for(lambda: not any(alive(p) for p in others), job)
    held_back = job_of_attempt(job, first + 1)["held_back"]
    assert held_back["unheard"] == []
    containers = job.wait_until_running()
    assert {c["epoch"] for c in containers.values()} == {2}
    assert {p: c["host"] for p, c in containers.items()} == hosts
    job.expects(120)
    job.end()


@pytest.mark.long
def test_an_attempt_that_is_cut_off_ends_by_itself(make_job: Callable[[str], Job]) -> None:
    """Its NodeManager is dead and its JVM stands still: only the next rank ends the attempt.

    Driver, keeper and supervisor see the higher rank and go; they fence no incarnation on the way.
    """
    job = make_job("cut-off")
    job.produce(60)
    job.run()
    before = job.wait_until_running()
    node, first = job.am_host(), job.attempt
    jvm = jvm_of(job)
    old = programs(job, ".supervisor", ".lease_keeper", ".application_master")
    assert len(old) == 3
    job.cluster.kill_node_manager(node)
    os.kill(jvm, signal.SIGSTOP)
    try:
        job.produce(60, first=60)
        job_of_attempt(job, first + 1)
        wait_for(lambda: not any(alive(p) for p in old), job)
        assert alive(jvm)
        containers = job.wait_until_running()
        assert {p: c["epoch"] for p, c in containers.items()} == dict.fromkeys(before, 2)
        job.expects(120)
        with contextlib.suppress(ProcessLookupError):
            os.kill(jvm, signal.SIGCONT)
        wait_for(lambda: not alive(jvm), job)
        assert job.attempt == first + 1
        job.end()
    finally:
        job.cluster.kill_node(node)
        job.cluster.start_node(node)


@pytest.mark.long
def test_an_end_that_was_ordered_survives_its_driver(make_job: Callable[[str], Job]) -> None:
    """The driver dies while a container still stops: the next one goes on, and says the same."""
    job = make_job("ending")
    job.produce(60)
    job.run()
    child = job.settled()["0"]
    os.kill(child, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(job.kill)
        wait_for(lambda: job.get("v1/status")["job"]["state"] == "ending", job)
        (driver,) = programs(job, ".application_master")
        os.kill(driver, signal.SIGKILL)
        wait_for(lambda: programs(job, ".application_master") not in ([], [driver]), job)
        os.kill(child, signal.SIGCONT)
        assert done.result() == f"stopped {job.application_id} in order"
    ended = job.application()
    assert (ended.final_status, ended.diagnostics) == ("KILLED", "shut down on request")
    job.judge_history()


@pytest.mark.long
def test_a_driver_that_fails_at_every_start_gives_the_next_attempt_its_chance(
    make_job: Callable[[str], Job],
) -> None:
    """The attempt ends with the cause in YARN's diagnostics; the next one, elsewhere, does not."""
    job = make_job("taken")
    job.produce(60)
    with socket.socket() as holder:
        holder.bind(("0.0.0.0", 0))  # noqa: S104 - whatever address the AM will have
        holder.listen()
        port = holder.getsockname()[1]
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(job.run, f"cluster-manager.jobcoordinator.url.port={port}")
            wait_for(lambda: bool(job.rest.applications("taken_1")), job)
            (application,) = job.rest.applications("taken_1")
            job.application_id = application.application_id
            wait_for(lambda: any(FAILS_AT_STARTS in text for text in attempts(job)[:-1]), job)
            holder.close()
            running.result()
    (story,) = (text for text in attempts(job) if FAILS_AT_STARTS in text)
    assert "cannot listen on" in story
    assert f":{port}: " in story
    job.wait_until_running()
    assert job.attempt == len(attempts(job))
    job.expects(60)
    job.kill()


def attempts(job: Job) -> list[str]:
    """What YARN says of each attempt of the application, in their order.

    As XML: asked for JSON, the ResourceManager answers 503.
    """
    name = job.application_id.replace("application", "appattempt")
    base = f"{job.cluster.rm_url}/ws/v1/cluster/apps/{job.application_id}/appattempts/{name}"
    found: list[str] = []
    for number in itertools.count(1):
        try:
            with urllib.request.urlopen(f"{base}_{number:06}", timeout=10) as answer:  # noqa: S310 - ours
                found.append(bytes(answer.read()).decode())
        except urllib.error.HTTPError:
            break  # there is no attempt of that number yet
    return found
