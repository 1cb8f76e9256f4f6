"""Containers of a job on a real YARN cluster are moved and restarted: our tool, Samza's class."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from json_answers import require_promised
from samza_peer import SamzaPeer
from samza_streams import READ_COMMITTED
from yarn_actions import act
from yarn_jobs import Job, wait_for

OK, UNAUTHORIZED = 200, 401
_TOOL = [sys.executable, "-m", "homeport.cli.main"]


def _start(job: Job, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*_TOOL, *words, f"--config-path={job.path}"],
        env=job.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _call(job: Job, *words: str) -> str:
    """What it prints; it succeeds."""
    tool = _start(job, *words)
    out, err = tool.communicate(timeout=120)
    assert tool.returncode == 0, err
    return out.strip()


def _refusal(job: Job, *words: str) -> str:
    tool = _start(job, *words)
    out, err = tool.communicate(timeout=120)
    assert (tool.returncode, out) == (1, "")
    return err.splitlines()[-1]


def _now(job: Job) -> dict[str, dict[str, Any]]:
    """Its containers at this moment: an answer without a token may be a second old."""
    status = json.loads(job.get_text("v1/status", job.token))
    return {each["processor_id"]: each for each in status["containers"]}


def _at(job: Job, processor: str) -> tuple[str, int]:
    container = _now(job)[processor]
    assert container["phase"] == "running"
    return container["host"], container["epoch"]


def _moved_by_http(job: Job, processor: str, host: str) -> None:
    """By a token that is made, rotated and revoked while the job runs; each change is audited."""
    old, new = (_call(job, "token", "new", "ada", "--role=operate") for _ in range(2))
    wait_for(lambda: act(job, new, "restart", processor=processor)[0] == OK, job)
    status, plan = act(job, old, "move", processor=processor, host=host)
    before, _ = _at(job, processor)
    assert (status, plan["lines"]) == (OK, [f"{processor}: {before} -> {host}"])
    _call(job, "token", "revoke", "ada", "--old")
    wait_for(lambda: act(job, old, "restart", processor=processor)[0] == UNAUTHORIZED, job)
    assert act(job, new, "move", dry_run=False, processor=processor, host=host)[0] == OK
    wait_for(lambda: _now(job)[processor]["host"] == host, job)
    wait_for(lambda: _now(job)[processor]["phase"] == "running", job)
    lines = job.operator("audit", token=new).stdout.splitlines()
    assert len([line for line in lines if "config cluster-manager.jobcoordinator" in line]) == 3
    assert "ada from " in lines[-1]
    assert lines[-1].endswith(f"by http: move {processor}: {before!r} -> {host!r}")
    assert not [line for line in lines if old in line or new in line]
    # The page of the NodeManager that the dashboard leads to has the container's log.
    with urllib.request.urlopen(_now(job)[processor]["log_url"], timeout=30) as answer:  # noqa: S310 - ours
        assert f"processor {processor}" in answer.read().decode()


def test_containers_are_moved_and_restarted(
    make_job: Callable[[str], Job], samza: SamzaPeer
) -> None:
    """C1, C6, C7 and C9 with real parts: by name, to any host, in place, through a driver's death.

    Each is answered in one line; no other container is touched, nothing is charged, nothing is
    lost.
    """
    job = make_job("placed")
    job.values["job.container.count"] = "2"
    job.produce(60)
    job.run()
    started = job.wait_until_running()
    _read_log(job)
    hosts = {p: c["host"] for p, c in started.items()}
    (free,) = {"nm1", "nm2", "nm3"} - set(hosts.values())

    assert _call(job, "move", "0", free) == f"SUCCEEDED: 0@2 runs on {free}"
    assert (_at(job, "0"), _at(job, "1")) == ((free, 2), (hosts["1"], 1))
    resource = _now(job)["0"]["resource"]
    assert _call(job, "restart", "0") == f"SUCCEEDED: 0@3 runs on {free}"
    assert _now(job)["0"]["resource"] == resource
    assert _call(job, "move", "0", "last-seen") == f"SUCCEEDED: 0@4 runs on {free}"
    assert _now(job)["0"]["resource"] != resource
    assert _call(job, "move", "1", "any").startswith("SUCCEEDED: 1@2 runs on ")
    assert _at(job, "1")[0] != hosts["1"]
    _moved_by_http(job, "1", hosts["1"])

    stated = _refusal(job, "move", "7", "any")
    assert stated == "error: PROCESSOR = '7': the job has none of that id; there are 0, 1"
    assert "'nm9': it is no live host" in _refusal(job, "move", "0", "nm9")
    assert "--expiry-ms" in _refusal(job, "move", "0", "any", "--expiry-ms=0")

    _follow_log_of_a_restart(job)
    _die_in_a_move(job, hosts["0"])
    _ask_as_samza(job, samza, free)

    wait_for(lambda: not _under_way(job), job)
    assert job.get("v1/status")["failures"] == []
    job.produce(40, first=60)
    job.expects(100)
    job.end()
    assert "the job does not run" in _refusal(job, "restart", "0")


def _read_log(job: Job) -> None:
    """The end of the log, the whole of it, as objects too, and a processor that the job has not."""
    last = _call(job, "logs", "1", "--tail=1")
    whole = _call(job, "logs", "1", "--tail=0")
    assert "\n" not in last
    assert "processor 1 epoch 1 on" in whole.splitlines()[0]
    assert last in whole
    first = _call(job, "logs", "1", "--tail=0", "--json").splitlines()[0]
    require_promised(["logs"], first)
    assert json.loads(first)["line"] == whole.splitlines()[0]
    refused = "error: PROCESSOR = '7': the job has 0, 1; name one of these"
    assert _refusal(job, "logs", "7") == refused


def _follow_log_of_a_restart(job: Job) -> None:
    """The log of the stopped container comes to its end, then that of its successor begins."""
    epoch = _at(job, "1")[1]
    tool = _start(job, "logs", "1", "--follow", "--tail=1")
    try:
        assert tool.stdout is not None
        tool.stdout.readline()
        assert _call(job, "restart", "1").startswith(f"SUCCEEDED: 1@{epoch + 1}")
        seen = next(line for line in tool.stdout if " epoch " in line or "in order" in line)
        assert "stopped in order" in seen
        seen = next(line for line in tool.stdout if " epoch " in line)
        assert f"processor 1 epoch {epoch + 1} on" in seen
    finally:
        tool.send_signal(signal.SIGINT)
        tool.communicate(timeout=30)
    assert tool.returncode == 130


def _under_way(job: Job) -> set[str]:
    """The processors of placements; a status is shared for a second, so it may show one ended."""
    return {placement["processor_id"] for placement in job.get("v1/status")["placements"]}


def _die_in_a_move(job: Job, to: str) -> None:
    """The driver is killed in the midst of it: it is answered all the same, and once."""
    epoch = _at(job, "0")[1]
    tool = _start(job, "move", "0", to, "--expiry-ms=60000")
    wait_for(lambda: "0" in _under_way(job), job)
    job.kill_driver()
    out, err = tool.communicate(timeout=180)
    assert tool.returncode == 0, err
    assert out.strip() == f"SUCCEEDED: 0@{epoch + 1} runs on {to}"
    assert _at(job, "0") == (to, epoch + 1)


def _ask_as_samza(job: Job, samza: SamzaPeer, to: str) -> None:
    epoch = _at(job, "0")[1]
    servers = {"systems.kafka.producer.bootstrap.servers": job.servers}
    samza.open({**job.values, **servers, **READ_COMMITTED})
    request = [job.application_id, "0", to, 30_000, int(time.time() * 1000)]
    uuid = samza.ask("ask-placement", request)

    def answered() -> bool:
        asked, answer = samza.ask("placement-messages", uuid)
        return asked is None and answer is not None and "statusCode=SUCCEEDED" in answer

    wait_for(answered, job)
    assert _at(job, "0") == (to, epoch + 1)
