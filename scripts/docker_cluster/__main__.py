"""The commands docker/up, down, status and logs."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from docker_cluster import observability
from docker_cluster.cluster import SERVICES, DockerCluster
from docker_cluster.engine import DockerError
from homeport.config.errors import HomeportError
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.hadoop_conf import SCHEDULERS

_EPILOG = "Exit code 0: done; 1: it cannot be done, and one line says why and what to do."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="docker", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser(
        "up",
        help="start the cluster in containers",
        description="Starts ResourceManager, NodeManagers nm1 to nm3, HDFS, Kafka, ZooKeeper and a "
        "client in containers; everything they need is fetched and built first (minutes, once). "
        "Repeated after a change of the code, it renews the client's homeport in seconds.",
        epilog=_EPILOG,
    )
    up.add_argument(
        "--scheduler",
        choices=tuple(SCHEDULERS),
        help="YARN's scheduler, with the queues default and streams (default: fair); labels: "
        "the CapacityScheduler, where streams has the nodes with the label state, all but the last",
    )
    up.add_argument(
        "--secure",
        action="store_true",
        help="with Kerberos for YARN and HDFS, and for Kafka TLS, SASL/SCRAM and rights of access",
    )
    up.add_argument(
        "--observability",
        action="store_true",
        help="with Prometheus, which finds each job, and Grafana where its image can be had",
    )
    commands.add_parser(
        "down",
        help="remove it, with all its data",
        description="Removes containers, networks and volumes of this clone's cluster, and of "
        "the one that docker/demo --keep has left; stops the Docker engine if one of them has "
        "started it and no other cluster uses it.",
        epilog=_EPILOG,
    )
    status = commands.add_parser("status", help="show its containers and addresses", epilog=_EPILOG)
    status.add_argument("--json", action="store_true", help="as JSON")
    logs = commands.add_parser(
        "logs",
        help="show what its daemons print",
        description="Shows what the daemons print. Logs of a job's containers: docker exec into "
        "client, then homeport, or yarn logs.",
        epilog=_EPILOG,
    )
    logs.add_argument("services", nargs="*", metavar="SERVICE", help=", ".join(SERVICES))
    logs.add_argument("--follow", "-f", action="store_true", help="go on until Ctrl-C")
    return parser


def _show(status: dict[str, object]) -> None:
    if not status:
        print("the cluster in containers is down; docker/up starts it")
        return
    print(f"cluster {status['name']}, image {status['image']}")
    for part in ("addresses", "containers"):
        values = status[part]
        assert isinstance(values, dict)  # noqa: S101 - for the type checker
        for name, value in values.items():
            print(f"  {name:<16} {value}")


def _logs(cluster: DockerCluster, services: list[str], *, follow: bool) -> int:
    known = (*SERVICES, *observability.SERVICES)
    unknown = [s for s in services if s not in known]
    if unknown:
        raise DockerError(f"no service {unknown[0]!r}: there are {', '.join(known)}")
    code = 0
    for service in services or SERVICES:
        print(f"==> {service}", flush=True)
        command = ["docker", "logs", *(["--follow"] if follow else []), cluster.container(service)]
        code = subprocess.run(command, env=cluster.engine.environment, check=False).returncode
    return code


def _remove_demo() -> None:
    """Nothing is left of a demo that has ended, or was killed; one that runs goes on."""
    demo = DockerCluster.of_demo()
    if not demo.is_left:
        return
    with demo.owned() as is_over:
        if is_over:
            demo.down(_progress)
        else:
            _progress(f"docker/demo runs: its cluster {demo.name} stays until its end")


def _progress(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    """Run a command; return its exit code."""
    options = _parser().parse_args()
    cluster = DockerCluster()
    try:
        match options.command:
            case "up":
                cluster.up(
                    _progress,
                    options.scheduler,
                    secure=options.secure,
                    observed=options.observability,
                )
                _show(cluster.status())
            case "down":
                _remove_demo()
                cluster.down(_progress)
                print("the cluster in containers is down, and nothing of it is left")
            case "status" if options.json:
                print(json.dumps(cluster.status()))
            case "status":
                _show(cluster.status())
            case "logs":
                return _logs(cluster, options.services, follow=options.follow)
    except (DockerError, ClusterError, HomeportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
