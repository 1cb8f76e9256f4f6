"""Hadoop's configuration files for a small cluster on one machine."""

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from homeport.local_cluster.layout import Layout
from homeport.local_cluster.net.addresses import LOCALIZER_PORT, NM_PORT, NM_WEB_PORT, Addresses
from homeport.local_cluster.processes import CLUSTER_VARIABLE, NODE_VARIABLE

NODE_MEMORY_MB = 16384
NODE_VCORES = 64
#: YARN rounds requests up to a multiple of this; it is low so that small containers stay small.
MINIMUM_ALLOCATION_MB = 64
NODE_EXPIRY_MS = 10_000
#: How long an attempt may be silent before YARN gives it up, which counts as one attempt. An
#: attempt that starts on a busy machine may take more than 20 s to register. An attempt on a lost
#: node does not wait for this time: YARN gives it up with the node.
ATTEMPT_EXPIRY_MS = 60_000
#: Time a container has between SIGTERM and SIGKILL when YARN ends it. Orderly stops go through the
#: application master and do not use it. It is long enough to finish a transaction, and shorter than
#: the start of a second application master, so that containers of two attempts hardly overlap.
SIGKILL_DELAY_MS = 5_000
APPLICATION_ATTEMPTS = 10

_FILE_SHELL = "org.apache.hadoop.fs.FsShell"
_SCHEDULERS_PACKAGE = "org.apache.hadoop.yarn.server.resourcemanager.scheduler"
SCHEDULERS = {
    "fair": f"{_SCHEDULERS_PACKAGE}.fair.FairScheduler",
    "capacity": f"{_SCHEDULERS_PACKAGE}.capacity.CapacityScheduler",
    "labels": f"{_SCHEDULERS_PACKAGE}.capacity.CapacityScheduler",
}
"""Schedulers of YARN that a cluster can have, each with the queues ``default`` and ``streams``.

``labels``: the CapacityScheduler with node labels. The queue ``streams`` uses the nodes with the
label ``state``. The queue ``default`` uses the others, unless a job asks for the label.
"""
LABELS = "labels"
LABEL = "state"

LOG4J = """\
log4j.rootLogger=INFO,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""

_CAPACITY = "yarn.scheduler.capacity"
_CAPACITY_QUEUES = {
    f"{_CAPACITY}.root.queues": "default,streams",
    f"{_CAPACITY}.root.default.capacity": 50,
    f"{_CAPACITY}.root.streams.capacity": 50,
    # A queue may use what the other leaves free.
    f"{_CAPACITY}.root.default.maximum-capacity": 100,
    f"{_CAPACITY}.root.streams.maximum-capacity": 100,
    f"{_CAPACITY}.root.default.user-limit-factor": 2,
    f"{_CAPACITY}.root.streams.user-limit-factor": 2,
    # Each job has an AM, and the default gives all AMs together a tenth of the memory.
    f"{_CAPACITY}.maximum-am-resource-percent": 1.0,
    # The default counts memory alone, and would give a node more containers than cores.
    f"{_CAPACITY}.resource-calculator": (
        "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    ),
}
_LABELLED_QUEUES = {
    f"{_CAPACITY}.root.accessible-node-labels.{LABEL}.capacity": 100,
    f"{_CAPACITY}.root.default.accessible-node-labels": LABEL,
    f"{_CAPACITY}.root.default.accessible-node-labels.{LABEL}.capacity": 50,
    f"{_CAPACITY}.root.default.accessible-node-labels.{LABEL}.maximum-capacity": 100,
    f"{_CAPACITY}.root.streams.accessible-node-labels": LABEL,
    f"{_CAPACITY}.root.streams.accessible-node-labels.{LABEL}.capacity": 50,
    f"{_CAPACITY}.root.streams.accessible-node-labels.{LABEL}.maximum-capacity": 100,
    f"{_CAPACITY}.root.streams.default-node-label-expression": LABEL,
}
_FAIR_QUEUES = """\
<?xml version="1.0"?>
<allocations>
  <queue name="default"/>
  <queue name="streams"/>
  <queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>
  <queuePlacementPolicy>
    <rule name="specified" create="false"/>
    <rule name="default" queue="default"/>
  </queuePlacementPolicy>
</allocations>
"""


@dataclass(frozen=True, slots=True)
class HadoopSite:
    """What the configuration files of one cluster depend on.

    ``keeps_containers``: whether containers outlive their NodeManager, which finds them again.
    """

    layout: Layout
    addresses: Addresses
    cluster_id: str
    jars: Path
    scheduler: str = "fair"
    keeps_containers: bool = False

    @property
    def class_path(self) -> str:
        """Return the class path of clients and application masters."""
        return f"{self.layout.conf}:{self.jars}/*"


def write_all(site: HadoopSite) -> None:
    """Write all files and folders for daemons, containers and clients of the cluster."""
    layout = site.layout
    for mount in ("user", "tmp", "app-logs"):
        (layout.fs / mount).mkdir(parents=True, exist_ok=True)
        (layout.fs / mount).chmod(0o1777)
    for folder in (layout.bin, layout.skein):
        folder.mkdir(parents=True, exist_ok=True)
    _write_folder(layout.conf, core_site(layout), yarn_site(site))
    write_queues(layout.conf, labels=site.scheduler == LABELS)
    for node in site.addresses.nodes:
        write_node(site, node)
    _write_command(layout.bin / "yarn", f'echo "{site.class_path}"')
    java = '"${JAVA_HOME:+$JAVA_HOME/bin/}java"'
    shell = f'exec {java} -cp "{site.class_path}" {_FILE_SHELL} "$@"'
    _write_command(layout.bin / "hadoop", f"shift  # fs\n{shell}")


def _write_command(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def write_node(site: HadoopSite, node: str) -> None:
    """Write the files and folders of one NodeManager."""
    layout = site.layout
    for folder in (layout.node_local(node), layout.node_logs(node), layout.node_state(node)):
        folder.mkdir(parents=True, exist_ok=True)
    _write_folder(
        layout.node_conf(node), core_site(layout), {**yarn_site(site), **node_site(site, node)}
    )


def write_queues(folder: Path, *, labels: bool = False) -> None:
    """Write the queues of both schedulers; those of the CapacityScheduler may have labels."""
    (folder / "fair-scheduler.xml").write_text(_FAIR_QUEUES, encoding="utf-8")
    capacity = _CAPACITY_QUEUES | (_LABELLED_QUEUES if labels else {})
    (folder / "capacity-scheduler.xml").write_text(site_xml(capacity), encoding="utf-8")


def labelled_nodes(nodes: Iterable[str]) -> tuple[str, ...]:
    """Return the nodes that get the label: all but the last one."""
    return tuple(nodes)[:-1]


def write_hosts(layout: Layout, machines: Mapping[str, str]) -> None:
    """Write the hosts file of all processes of the cluster, from {name: address}."""
    partial = layout.hosts.with_name(layout.hosts.name + ".partial")
    partial.write_text(hosts_text(machines, socket.gethostname()), encoding="utf-8")
    # At once: the JVMs of a cluster that runs read it at any time.
    partial.replace(layout.hosts)


def hosts_text(machines: Mapping[str, str], own_hostname: str) -> str:
    """Return a hosts file; application masters need the machine's own name in it."""
    entries = [("127.0.0.1", "localhost"), ("127.0.0.1", own_hostname)]
    entries += [(address, name) for name, address in machines.items()]
    return "".join(f"{address} {name}\n" for address, name in entries)


def site_xml(values: Mapping[str, object]) -> str:
    """Return a Hadoop configuration file, keys in order."""
    properties = "".join(
        f"  <property><name>{escape(key)}</name><value>{escape(str(value))}</value></property>\n"
        for key, value in sorted(values.items())
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{properties}</configuration>\n'


def core_site(layout: Layout) -> dict[str, object]:
    """Return the settings of a file system in a folder; YARN keeps uploads and logs there."""
    mounts = {
        f"fs.viewfs.mounttable.homeport.link./{mount}": f"file://{layout.fs}/{mount}"
        for mount in ("user", "tmp", "app-logs")
    }
    return {
        "fs.defaultFS": "viewfs://homeport/",
        "hadoop.tmp.dir": layout.temporary,
        "hadoop.http.staticuser.user": "nobody",
        "ipc.client.connect.max.retries": 3,
        **mounts,
    }


def yarn_site(site: HadoopSite) -> dict[str, object]:
    """Return the settings of the ResourceManager and of clients; NodeManagers add `node_site`."""
    layout = site.layout
    return {
        **behaviour(),
        **_rm_addresses(site.addresses),
        "yarn.resourcemanager.scheduler.class": SCHEDULERS[site.scheduler],
        "yarn.node-labels.enabled": str(site.scheduler == LABELS).lower(),
        "yarn.scheduler.fair.allocation.file": layout.conf / "fair-scheduler.xml",
        "yarn.resourcemanager.fs.state-store.uri": f"file://{layout.temporary}/rm-state",
        "yarn.node-attribute.fs-store.root-dir": f"file://{layout.temporary}/node-attributes",
        "yarn.node-labels.fs-store.root-dir": f"file://{layout.temporary}/node-labels",
        # The working directory comes first so that an application's own yarn-site.xml counts.
        "yarn.application.classpath": f".,{layout.conf},{site.jars}/*",
        # Container logs stay readable as files after the application's end.
        "yarn.log-aggregation.enable-local-cleanup": "false",
    }


def behaviour() -> dict[str, object]:
    """Return the settings that the local cluster and the cluster in Docker share."""
    return {
        **_scheduler(),
        **_recovery(),
        "yarn.nm.liveness-monitor.expiry-interval-ms": NODE_EXPIRY_MS,
        "yarn.am.liveness-monitor.expiry-interval-ms": ATTEMPT_EXPIRY_MS,
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 250,
        "yarn.resourcemanager.am.max-attempts": APPLICATION_ATTEMPTS,
        # Nodes start together with the ResourceManager; the default waits 30 s between tries.
        "yarn.resourcemanager.connect.retry-interval.ms": 1000,
        "yarn.log-aggregation-enable": "true",
        "yarn.log-aggregation.file-formats": "TFile",
        "yarn.log-aggregation.TFile.remote-app-log-dir-suffix": "logs",
        "yarn.nodemanager.remote-app-log-dir": "/app-logs",
        "yarn.nodemanager.sleep-delay-before-sigkill.ms": SIGKILL_DELAY_MS,
        # YARN kills a container that uses more memory than its grant, as on a shared cluster.
        "yarn.nodemanager.pmem-check-enabled": "true",
        # The default, true, would leave the killing to cgroups, which are not set up here.
        "yarn.nodemanager.resource.memory.enforced": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.resource.memory-mb": NODE_MEMORY_MB,
        "yarn.nodemanager.resource.cpu-vcores": NODE_VCORES,
        "yarn.nodemanager.localizer.cache.cleanup.interval-ms": 600_000,
        "yarn.nodemanager.env-whitelist": (
            "JAVA_HOME,HADOOP_COMMON_HOME,PATH,LANG,TZ,HOMEPORT_CACHE_DIR"
        ),
    }


def node_site(site: HadoopSite, node: str) -> dict[str, object]:
    """Return the settings that only this NodeManager has."""
    layout = site.layout
    environment = {
        "MALLOC_ARENA_MAX": "2",
        "LOGGED_STORE_BASE_DIR": layout.node_state(node),
        "HOMEPORT_HOSTS_FILE": layout.hosts,
        CLUSTER_VARIABLE: site.cluster_id,
        NODE_VARIABLE: node,
    }
    return {
        "yarn.nodemanager.hostname": node,
        "yarn.nodemanager.bind-host": site.addresses.nodes[node],
        "yarn.nodemanager.address": f"{node}:{NM_PORT}",
        "yarn.nodemanager.localizer.address": f"{node}:{LOCALIZER_PORT}",
        "yarn.nodemanager.webapp.address": f"{node}:{NM_WEB_PORT}",
        "yarn.nodemanager.local-dirs": layout.node_local(node),
        "yarn.nodemanager.log-dirs": layout.node_logs(node),
        "yarn.nodemanager.admin-env": ",".join(f"{k}={v}" for k, v in environment.items()),
        "yarn.nodemanager.recovery.enabled": str(site.keeps_containers).lower(),
        "yarn.nodemanager.recovery.dir": layout.node(node) / "recovery",
        "yarn.nodemanager.recovery.supervised": str(site.keeps_containers).lower(),
    }


def _rm_addresses(addresses: Addresses) -> dict[str, object]:
    """Return all addresses of the ResourceManager, with hosts: tools read the client's file."""
    keys = {
        "client": "yarn.resourcemanager.address",
        "scheduler": "yarn.resourcemanager.scheduler.address",
        "tracker": "yarn.resourcemanager.resource-tracker.address",
        "admin": "yarn.resourcemanager.admin.address",
        "web": "yarn.resourcemanager.webapp.address",
    }
    return {
        "yarn.resourcemanager.hostname": addresses.rm,
        "yarn.resourcemanager.bind-host": addresses.rm,
        **{keys[service]: f"{addresses.rm}:{port}" for service, port in addresses.rm_ports.items()},
    }


def _recovery() -> dict[str, object]:
    """Return settings by which a ResourceManager that restarts keeps applications running."""
    store = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
    return {
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.work-preserving-recovery.enabled": "true",
        # Nodes are back within two seconds; nothing new is granted before that (default: 10 s).
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": 2000,
        "yarn.resourcemanager.store.class": store,
    }


def _scheduler() -> dict[str, object]:
    """Return the settings with which a scheduler runs continuously, not once per node heartbeat.

    They cover both schedulers; ``yarn.resourcemanager.scheduler.class`` chooses one.
    """
    return {
        "yarn.scheduler.capacity.schedule-asynchronously.enable": "true",
        "yarn.scheduler.fair.continuous-scheduling-enabled": "true",
        # The RM loses an AM container that is allocated within the very call that requests it
        # (RMAppAttemptImpl, ScheduleTransition): the application then stays ACCEPTED until the
        # container's allocation expires and the next attempt begins. A pass every 5 ms (YARN's
        # default) hits that call now and then, a pass every 100 ms hardly ever. The short expiry
        # (default: ten minutes) limits the wait where it does.
        "yarn.scheduler.fair.continuous-scheduling-sleep-ms": 100,
        "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms": 15_000,
        "yarn.scheduler.fair.assignmultiple": "true",
        "yarn.scheduler.fair.user-as-default-queue": "false",
        "yarn.scheduler.minimum-allocation-mb": MINIMUM_ALLOCATION_MB,
        "yarn.resource-types.memory-mb.increment-allocation": MINIMUM_ALLOCATION_MB,
        "yarn.scheduler.maximum-allocation-mb": NODE_MEMORY_MB,
        "yarn.scheduler.maximum-allocation-vcores": NODE_VCORES,
    }


def _write_folder(folder: Path, core: Mapping[str, object], yarn: Mapping[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "core-site.xml").write_text(site_xml(core), encoding="utf-8")
    (folder / "yarn-site.xml").write_text(site_xml(yarn), encoding="utf-8")
    (folder / "log4j.properties").write_text(LOG4J, encoding="utf-8")
