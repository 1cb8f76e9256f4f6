"""``docker/demo``: the main job on a cluster in containers, from the client's container.

The demo itself (``flights_demo``) runs in the client, with the environment that its jobs take with
them. What it requests of the machine outside, as to cut a host off, is done here.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from types import FrameType

from flights_demo.attached import DONE, REQUEST

from docker_cluster.cluster import DockerCluster
from docker_cluster.engine import DockerError
from homeport.config.errors import HomeportError
from homeport.local_cluster.errors import ClusterError

_PYTHON = "/opt/homeport/bin/python"


_PASSED_ON = ("fail_host", "mixed", "keep")


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The options; argparse ends the program where they are wrong."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.mixed and not options.fail_host:
        parser.error("--mixed goes with --fail-host only: give that too, or leave it out")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="docker/demo",
        description="Starts a cluster of its own in containers: YARN with three hosts, HDFS, "
        "Kafka, ZooKeeper and a client; runs the flights job from the client, whose environment "
        "travels to hosts that have Java and Python alone; compares every plane with the right "
        "answer; stops the job, submits it again, and shows that each container came home. The "
        "cluster is removed at the end, after an error or Ctrl-C too.",
        epilog="Exit code 0: all of that held. It takes about two minutes; the first time the "
        "image, the jars and the environment are made or fetched (some minutes).",
    )
    parser.add_argument(
        "--fail-host",
        action="store_true",
        help="with standbys and a lease of 3 s, a host with an active container is cut off from "
        "all others; the container ends by its lease, its standby takes its place, and the host "
        "comes back",
    )
    parser.add_argument(
        "--mixed",
        action="store_true",
        help="with --fail-host: mixed containers, which have standby tasks beside active ones, in "
        "place of standby containers; the tasks of the lost host go on in the processes that run",
    )
    parser.add_argument(
        "--secure",
        action="store_true",
        help="on a cluster with locks: Kerberos for YARN and HDFS; for Kafka TLS, SASL/SCRAM and "
        "rights of access that allow what the job needs and nothing more",
    )
    parser.add_argument("--keep", action="store_true", help="leave cluster and job up")
    return parser


class Demo:
    """One run in a cluster of its own."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._cluster = DockerCluster.of_demo()

    def run(self) -> int:
        """Return the exit code of the demo in the client.

        DockerError: the cluster does not come up.
        """
        began = time.monotonic()
        self._cluster.down(lambda _: None)  # of a run that was killed
        self._cluster.up(_say, secure=self._options.secure)
        _say(f"the cluster is up after {time.monotonic() - began:.0f} s")
        code = self._run_in_client()
        _say(f"docker/demo took {time.monotonic() - began:.0f} s")
        return code

    def end(self) -> None:
        """Take the cluster down, unless it is to be kept."""
        if self._options.keep:
            _say(
                f"kept: docker exec -it {self._cluster.container('client')} bash; docker/down, or "
                "the next docker/demo, removes it"
            )
        else:
            self._cluster.down(_say)

    def _run_in_client(self) -> int:
        archive = f"/homeport/environments/{self._cluster.archive.name}"
        command = ["env", "PYTHONPATH=/homeport/scripts", "PYTHONDONTWRITEBYTECODE=1", _PYTHON]
        command += ["-m", "flights_demo", "--attached", archive]
        command += passed_on(self._options)
        child = subprocess.Popen(
            self._cluster.client_command(*command, interactive=True),
            env=self._cluster.engine.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        assert child.stdin is not None  # noqa: S101 - for the type checker
        assert child.stdout is not None  # noqa: S101 - as above
        try:
            for line in child.stdout:
                if line.startswith(REQUEST):
                    child.stdin.write(f"{self._answer(line.removeprefix(REQUEST))}\n")
                    child.stdin.flush()
                else:
                    print(line, end="", flush=True)
            return child.wait()
        finally:
            child.kill()
            child.wait()

    def _answer(self, request: str) -> str:
        what, place = json.loads(request)
        try:
            if what == "cut":
                self._cluster.faults.cut(place)
            else:
                self._cluster.faults.heal(place)
        except DockerError as error:
            return str(error)
        return DONE


def passed_on(options: argparse.Namespace) -> list[str]:
    """Return the options of the demo in the client that were given."""
    return [f"--{name.replace('_', '-')}" for name in _PASSED_ON if getattr(options, name)]


def _say(line: str) -> None:
    print(line, flush=True)


def _interrupted(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Run the command line; return 0 where every verdict held."""
    options = parse_arguments()
    with DockerCluster.of_demo().owned() as is_alone:
        if is_alone:
            return _run(options)
    print("error: another docker/demo of this clone runs: wait for its end", file=sys.stderr)
    return 1


def _run(options: argparse.Namespace) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    demo = Demo(options)
    try:
        return demo.run()
    except (DockerError, ClusterError, HomeportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        _say("interrupted; cleaning up")
        return 130
    finally:
        # Cleaning up must not be cut short by a second Ctrl-C: it is bounded by itself.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        demo.end()


if __name__ == "__main__":
    sys.exit(main())
