"""``homeport local``: a Kafka and a YARN on this machine, to try a job and to see it fail over."""

import json
from enum import StrEnum
from typing import Any

import typer

from homeport.cli.local import fault_commands, topic_commands
from homeport.cli.local.common import DEFAULT_NAME, Name, named, running, show
from homeport.cli.options import AsJson, described, new_app
from homeport.cli.usage import interrupt_on_sigterm
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.errors import ClusterError, ClusterRunningError

_EPILOG = """\
\b
A session:
  homeport local up                        3 nodes and Kafka; Java 17, the first time Maven too
  eval "$(homeport local env)"             run-job and Kafka clients of this shell find them, and
                                           the commands below, where up had a --name
  homeport local send orders 'ann={"amount": 5}'
  homeport local read orders               what a topic holds
  homeport local status                    addresses, and what runs
  homeport local kill-node nm2             nm2 loses power: its containers go on elsewhere
  homeport local start-node nm2            ... and comes back with its disk
  homeport local logs --node nm2           paths of its logs, those of containers included
  homeport local down                      nothing of it runs any more; the logs stay

\b
Files are below ${HOMEPORT_CACHE_DIR:-~/.cache/homeport}/clusters/NAME/:
  logs/                                    of daemons
  nodes/NODE/logs/APPLICATION/CONTAINER/   of containers; of a node's life before start-node in
                                           logs-1, logs-2...
  nodes/NODE/state/                        LOGGED_STORE_BASE_DIR

Clusters of different names can be up at once: each has loopback addresses of its own. An error is
one line, and exit code 1.
"""
_BROKERS_EPILOG = """\
Each of several brokers is a controller too; kafka is number 1, kafka2 number 2. They keep a topic
that says nothing else, and Kafka's own topics, on three of them, of which two must be in sync. A
broker that is silent for 4 s (9 s by Kafka's default) is fenced, and its partitions get other
leaders; a replica that is 4 s behind (30 s) is out of sync; leaders do not move back by themselves.
"""
_ABOUT = """\
A Kafka and a YARN on this machine, and a ZooKeeper on request: no root, no Docker.

They are the real ones, as plain processes. They stay up until `homeport local down`.
"""

app = new_app()
_NODES, _BROKERS = 3, 1


class Scheduler(StrEnum):
    """YARN's schedulers, by the names that ``SCHEDULERS`` has."""

    FAIR = "fair"
    CAPACITY = "capacity"
    LABELS = "labels"


@app.callback(help=_ABOUT, epilog=_EPILOG)
def begin() -> None:
    """SIGTERM ends a command as Ctrl-C does: with clean-up."""
    interrupt_on_sigterm()


@app.command(short_help="start a cluster, or say that it is up", epilog=_BROKERS_EPILOG)
@described(
    nodes=typer.Option("--nodes", help="NodeManagers; with 0 there is no YARN.", show_default="3"),
    brokers=typer.Option("--brokers", help="Kafka brokers.", show_default="1"),
    zookeeper="A ZooKeeper too, for standalone processors.",
    scheduler=(
        "YARN's scheduler, with the queues default and streams; labels: the "
        "CapacityScheduler, where streams has the nodes with the label state, all but the "
        "last."
    ),
    namespaces=(
        "Each daemon has a network of its own, which can be cut (root, iproute2, iptables)."
    ),
)
def up(
    *,
    name: Name = DEFAULT_NAME,
    nodes: int | None = None,
    brokers: int | None = None,
    zookeeper: bool = False,
    scheduler: Scheduler = Scheduler.FAIR,
    namespaces: bool = False,
) -> None:
    """Starts a cluster; if it is up already, prints its status.

    Returns when Kafka answers and every node takes work. The first time Maven fetches the jars of
    Kafka and Hadoop, some 130 MB.
    """
    cluster = LocalCluster(
        name,
        nodes=_NODES if nodes is None else nodes,
        brokers=_BROKERS if brokers is None else brokers,
        zookeeper=zookeeper,
        namespaces=namespaces,
        scheduler=scheduler.value,
        keeps_containers=True,
    )
    try:
        cluster.up(show)
    except ClusterRunningError:
        found = cluster.status()
        _refuse_another_form(found, nodes, brokers, zookeeper=zookeeper)
        show(f"cluster {name} is up already")
        _print_status(found)
        return
    _print_status(cluster.status())
    show(
        f'next: eval "$(homeport local env{named(name)})"; homeport local down{named(name)} ends it'
    )


@app.command(short_help="stop the cluster, delete its data")
def down(*, name: Name = DEFAULT_NAME) -> None:
    """Stops the cluster and what runs on it, and deletes its data; the logs are kept."""
    cluster = LocalCluster(name)
    if cluster.status()["state"] == "down":
        show(cluster.none_is_up())
        return
    cluster.down(show)
    show(f"cluster {name} is down; logs: {cluster.log_dir}")


@app.command(short_help="print addresses, and what runs")
def status(*, name: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Prints whether it is up, its addresses, and the state of each broker and node."""
    found = LocalCluster(name).status()
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print_status(found)


@app.command(short_help="print export lines for a shell")
def env(*, name: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Prints export lines, by which run-job and Kafka clients of a shell find the cluster.

    Use: eval "$(homeport local env)". $HOMEPORT_BOOTSTRAP_SERVERS names its Kafka, $HADOOP_CONF_DIR
    its YARN, $HOMEPORT_ZOOKEEPER its ZooKeeper; $HOMEPORT_CLUSTER is the default of --name.
    """
    variables = running(name).env()
    if as_json:
        print(json.dumps(variables, indent=2))
        return
    for key, value in variables.items():
        # Not shlex.quote: all lines look alike, also where the shell needs no quotes.
        quoted = value.replace("'", "'\"'\"'")
        print(f"export {key}='{quoted}'")


@app.command(short_help="print the paths of all logs")
@described(node="Of this node only.")
def logs(*, name: Name = DEFAULT_NAME, node: str | None = None, as_json: AsJson = False) -> None:
    """Prints the paths of the logs of daemons and containers."""
    cluster = LocalCluster(name)
    if node is not None:
        running(name).state_dir(node)
    files = [str(path) for path in cluster.log_files(node)]
    if not files:
        raise ClusterError(f"no logs of cluster {name} in {cluster.log_dir}")
    print(json.dumps(files, indent=2) if as_json else "\n".join(files))


def _refuse_another_form(
    status: dict[str, Any], nodes: int | None, brokers: int | None, *, zookeeper: bool
) -> None:
    wrong = [
        f"--{what} {wanted}: it has {len(status[what])}"
        for what, wanted in (("nodes", nodes), ("brokers", brokers))
        if wanted not in (None, len(status[what]))
    ]
    if zookeeper and status["zookeeper"] is None:
        wrong.append("--zookeeper: it has none")
    if wrong:
        name = status["name"]
        raise ClusterError(
            f"cluster {name} is up already, and otherwise ({'; '.join(wrong)}); take it down by "
            f"homeport local down{named(name)}, or use another --name"
        )


app.add_typer(topic_commands.app)
app.add_typer(fault_commands.app)


def _print_status(status: dict[str, Any]) -> None:
    show(f"cluster {status['name']}: {status['state']}")
    for label, key in (
        ("Kafka", "bootstrap_servers"),
        ("ZooKeeper", "zookeeper"),
        ("ResourceManager", "resource_manager"),
        ("configuration", "conf_dir"),
        ("logs", "log_dir"),
    ):
        if status[key] is not None:
            show(f"  {label:<16} {status[key]}")
    for broker in status["brokers"]:
        pid = broker["pid"] or "none"
        role = ", controller" if broker["controller"] else ""
        show(
            f"  {broker['name']:<16} {broker['address']:<15} {broker['state']:<8} "
            f"pid {pid}, broker {broker['id']}{role}"
        )
    for node in status["nodes"]:
        pids = " ".join(map(str, node["pids"])) or "none"
        show(f"  {node['host']:<16} {node['address']:<15} {node['state']:<8} pids {pids}")
