"""The command line of the local cluster: scripts/dev-cluster."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NoReturn

from local_cluster.cluster import LocalCluster
from local_cluster.errors import ClusterError, ClusterRunningError
from local_cluster.hadoop_conf import SCHEDULERS

_DESCRIPTION = """\
A real YARN cluster (ResourceManager, NodeManagers nm1, nm2...) and Kafka, one broker or several, on
loopback addresses of this machine. No root, no Docker. It stays up until `down`; several with
different names can be up at once. With --namespaces (root) each daemon has a network of its own,
which can be cut.
"""

_EXAMPLES = """\
a session:
  scripts/dev-cluster up                     start 3 nodes and Kafka (java 17; first time mvn)
  scripts/dev-cluster up --scheduler labels  ... and 2 of the nodes have the label state
  eval "$(scripts/dev-cluster env)"          let run-job and Kafka clients of this shell find them
  scripts/dev-cluster status                 addresses, node states
  scripts/dev-cluster kill-node nm2          nm2 loses power: NodeManager and containers die
  scripts/dev-cluster start-node nm2         ... and comes back with its disk
  scripts/dev-cluster kill-node-manager nm2  its NodeManager alone dies, its containers live on
  scripts/dev-cluster pause-node nm2         nm2 stands still: SIGSTOP to all its processes
  scripts/dev-cluster resume-node nm2        ... and wakes up late, believing no time has passed
  scripts/dev-cluster stop-kafka             the broker dies by SIGKILL (--orderly: by SIGTERM)
  scripts/dev-cluster start-kafka            ... and is back, same port, same data
  scripts/dev-cluster pause-kafka            the broker stands still: SIGSTOP
  scripts/dev-cluster resume-kafka           ... and goes on; with up --brokers 3 these four are of
                                             all brokers at once, or of one: --broker 2
  scripts/dev-cluster restart-rm             a new ResourceManager takes over; containers run on
  scripts/dev-cluster cut-node nm2           cuts nm2 off from every node (up --namespaces; so also
                                             for rm, kafka, kafka2, and client: this machine's
                                             programs)
  scripts/dev-cluster cut-pair nm1 nm2       these two do not hear each other
  scripts/dev-cluster slow-node nm2 200      each packet that nm2 sends is 200 ms late
  scripts/dev-cluster heal                   no cut and no delay is left
  scripts/dev-cluster logs --node nm2        paths of its log files, containers included
  scripts/dev-cluster down                   stop everything, delete its data, keep the logs

Files are below ${HOMEPORT_CACHE_DIR:-~/.cache/homeport}/clusters/NAME/: logs/ (daemons),
nodes/NODE/logs/APPLICATION/CONTAINER/ (containers; of a node's life before start-node logs-1, -2),
nodes/NODE/state/ (LOGGED_STORE_BASE_DIR).

Of several brokers each is a controller too; kafka is number 1, kafka2 number 2. They keep a topic
that says nothing else, and Kafka's own topics, on three of them, of which two must be in sync. A
broker that is silent for 4 s (9 s by Kafka's default) is fenced, and its partitions get other
leaders; a replica that is 4 s behind (30 s) is out of sync; leaders do not move back by themselves.
"""


_Command = Callable[[argparse.Namespace], int]
_Add = Callable[[str, _Command, str], argparse.ArgumentParser]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, or 1 after one line on stderr."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return int(options.run(options))
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dev-cluster",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: _Command, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        added.add_argument("--name", default="dev", help="name of the cluster (default: dev)")
        return added

    up = command("up", _up, "start a cluster; if it is up already, print its status")
    up.add_argument("--nodes", type=int, default=3, help="NodeManagers (default: 3)")
    up.add_argument("--brokers", type=int, default=1, help="Kafka brokers (default: 1)")
    up.add_argument(
        "--scheduler",
        choices=tuple(SCHEDULERS),
        default="fair",
        help="YARN's scheduler, with the queues default and streams (default: fair); labels: "
        "the CapacityScheduler, where streams has the nodes with the label state, all but the last",
    )
    up.add_argument(
        "--namespaces",
        action="store_true",
        help="each daemon has a network of its own, which can be cut (root, iproute2, iptables)",
    )
    command("env", _env, "print export lines for a shell")
    status = command("status", _status, "print addresses and the states of brokers and nodes")
    status.add_argument("--json", action="store_true", help="as one JSON object")
    logs = command("logs", _logs, "print the paths of daemon and container logs")
    logs.add_argument("--node", help="of this node only")
    command("down", _down, "stop the cluster and delete its data; the logs are kept")
    kill = command("kill-node", _kill_node, "SIGKILL a NodeManager and everything it started")
    kill_manager = command(
        "kill-node-manager", _kill_node_manager, "SIGKILL a NodeManager alone, not its containers"
    )
    start = command("start-node", _start_node, "start the NodeManager of a killed node again")
    pause = command("pause-node", _pause_node, "SIGSTOP a NodeManager and everything it started")
    resume = command("resume-node", _resume_node, "SIGCONT everything of a paused node")
    for parser_of_node in (kill, kill_manager, start, pause, resume):
        parser_of_node.add_argument("node", metavar="NODE", help="nm1, nm2...")
    stop_kafka = _add_broker_commands(command)
    restart = command(
        "restart-rm",
        _restart_rm,
        "SIGKILL the ResourceManager and start it again; applications and containers go on",
    )
    for parser_of_daemon in (stop_kafka, restart):
        parser_of_daemon.add_argument(
            "--orderly", action="store_true", help="stop it by SIGTERM, in order"
        )
    _add_network_commands(command)
    return parser


def _add_broker_commands(command: _Add) -> argparse.ArgumentParser:
    """Returns the parser of the one that stops a broker."""
    stop = command("stop-kafka", _stop_kafka, "SIGKILL the broker; its data is left")
    brokers = [
        stop,
        command("start-kafka", _start_kafka, "start the broker again, same port, same data"),
        command("pause-kafka", _pause_kafka, "SIGSTOP the broker"),
        command("resume-kafka", _resume_kafka, "SIGCONT the paused broker"),
    ]
    for parser in brokers:
        parser.add_argument(
            "--broker", type=int, metavar="N", help="this one only, 1 to the last; default: all"
        )
    return stop


def _add_network_commands(command: _Add) -> None:
    cut = command("cut-node", _cut_node, "cut places from all others, silently, both ways")
    cut.add_argument("places", metavar="PLACE", nargs="+", help="nm1, nm2..., rm, kafka, client")
    pair = command("cut-pair", _cut_pair, "cut two places from each other, silently, both ways")
    pair.add_argument("places", metavar="PLACE", nargs=2, help="nm1, nm2..., rm, kafka, client")
    slow = command("slow-node", _slow_node, "hold each packet that a place sends back for a while")
    slow.add_argument("place", metavar="PLACE", help="nm1, nm2..., rm, kafka, client")
    slow.add_argument("delay_ms", metavar="MS", type=int, help="for how many milliseconds; 0: none")
    heal = command("heal", _heal, "end cuts and delays of the places given, or of all")
    heal.add_argument("places", metavar="PLACE", nargs="*", help="nm1, nm2..., rm, kafka, client")


def _up(options: argparse.Namespace) -> int:
    cluster = LocalCluster(
        options.name,
        nodes=options.nodes,
        brokers=options.brokers,
        namespaces=options.namespaces,
        scheduler=options.scheduler,
    )
    try:
        cluster.up(_say)
    except ClusterRunningError:
        _say(f"cluster {options.name} is up already")
        _print_status(cluster.status())
        return 0
    _print_status(cluster.status())
    name = "" if options.name == "dev" else f" --name {options.name}"
    _say(f'next: eval "$(scripts/dev-cluster env{name})"; scripts/dev-cluster down{name} ends it')
    return 0


def _env(options: argparse.Namespace) -> int:
    for key, value in LocalCluster.attach(options.name).env().items():
        # Not shlex.quote: all lines look alike, also where the shell needs no quotes.
        quoted = value.replace("'", "'\"'\"'")
        print(f"export {key}='{quoted}'")
    return 0


def _status(options: argparse.Namespace) -> int:
    status = LocalCluster(options.name).status()
    if options.json:
        print(json.dumps(status, indent=2))
    else:
        _print_status(status)
    return 0


def _logs(options: argparse.Namespace) -> int:
    cluster = LocalCluster(options.name)
    if options.node is not None:
        LocalCluster.attach(options.name).state_dir(options.node)
    files = cluster.log_files(options.node)
    if not files:
        raise ClusterError(f"no logs of cluster {options.name} in {cluster.log_dir}")
    for path in files:
        print(path)
    return 0


def _down(options: argparse.Namespace) -> int:
    cluster = LocalCluster(options.name)
    if cluster.status()["state"] == "down":
        _say(f"no cluster {options.name} is up")
        return 0
    cluster.down(_say)
    _say(f"cluster {options.name} is down; logs: {cluster.log_dir}")
    return 0


def _kill_node(options: argparse.Namespace) -> int:
    killed = LocalCluster.attach(options.name).kill_node(options.node)
    _say(f"{options.node}: killed {len(killed)} processes")
    return 0


def _kill_node_manager(options: argparse.Namespace) -> int:
    pid = LocalCluster.attach(options.name).kill_node_manager(options.node)
    _say(f"{options.node}: killed its NodeManager, process {pid}")
    return 0


def _start_node(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).start_node(options.node, _say)
    return 0


def _pause_node(options: argparse.Namespace) -> int:
    paused = LocalCluster.attach(options.name).pause_node(options.node)
    _say(f"{options.node}: paused {len(paused)} processes")
    return 0


def _resume_node(options: argparse.Namespace) -> int:
    woken = LocalCluster.attach(options.name).resume_node(options.node)
    _say(f"{options.node}: resumed {len(woken)} processes")
    return 0


def _stop_kafka(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).stop_kafka(options.broker, orderly=options.orderly)
    _say(f"{_broker_words(options)} is stopped; start-kafka starts it")
    return 0


def _start_kafka(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).start_kafka(_say, broker=options.broker)
    return 0


def _pause_kafka(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).pause_kafka(options.broker)
    _say(f"{_broker_words(options)} is paused; resume-kafka wakes it")
    return 0


def _resume_kafka(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).resume_kafka(options.broker)
    _say(f"{_broker_words(options)} goes on")
    return 0


def _broker_words(options: argparse.Namespace) -> str:
    return "Kafka" if options.broker is None else f"broker {options.broker}"


def _restart_rm(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).restart_resource_manager(_say, orderly=options.orderly)
    return 0


def _cut_node(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).faults.cut(*options.places)
    _say(f"cut from all others: {', '.join(options.places)}; heal ends it")
    return 0


def _cut_pair(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).faults.cut_pair(*options.places)
    _say(f"cut from each other: {', '.join(options.places)}; heal ends it")
    return 0


def _slow_node(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).faults.slow(options.place, options.delay_ms)
    _say(f"packets of {options.place} are {options.delay_ms} ms late; heal ends it")
    return 0


def _heal(options: argparse.Namespace) -> int:
    LocalCluster.attach(options.name).faults.heal(*options.places)
    _say(f"healed: {', '.join(options.places) or 'the whole network'}")
    return 0


def _print_status(status: dict[str, Any]) -> None:
    """The status for a reader."""
    print(f"cluster {status['name']}: {status['state']}")
    for label, key in (
        ("Kafka", "bootstrap_servers"),
        ("ResourceManager", "resource_manager"),
        ("configuration", "conf_dir"),
        ("logs", "log_dir"),
    ):
        if status[key] is not None:
            print(f"  {label:<16} {status[key]}")
    for broker in status["brokers"]:
        pid = broker["pid"] or "none"
        role = ", controller" if broker["controller"] else ""
        print(
            f"  {broker['name']:<16} {broker['address']:<15} {broker['state']:<8} "
            f"pid {pid}, broker {broker['id']}{role}"
        )
    for node in status["nodes"]:
        pids = " ".join(map(str, node["pids"])) or "none"
        print(f"  {node['host']:<16} {node['address']:<15} {node['state']:<8} pids {pids}")


def _say(line: str) -> None:
    print(line, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """End on SIGTERM as on Ctrl-C: with clean-up."""
    raise KeyboardInterrupt
