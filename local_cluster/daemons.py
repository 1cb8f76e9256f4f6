"""Command lines and environments of the cluster's Java processes."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from homeport.local_cluster.kafka_broker import kafka_cluster_id, server_properties
from homeport.local_cluster.layout import Layout, Record
from homeport.local_cluster.net.addresses import ZOOKEEPER, ZOOKEEPER_PORT
from homeport.local_cluster.net.network import Network
from homeport.local_cluster.processes import CLUSTER_VARIABLE, NODE_VARIABLE, ProcessId, spawn

RESOURCE_MANAGER = "rm"
TICK_MS = 2000
"""ZooKeeper's default: a session lasts two ticks at least."""

_RM_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NM_CLASS = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_LOG_TAIL_LINES = 15
_ZOOKEEPER_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
"""It serves with an ensemble or alone, by its settings; ``ZooKeeperServerMain`` only alone."""

#: Daemons get nothing else of the caller's environment: JAVA_TOOL_OPTIONS, CLASSPATH or HADOOP_* of
#: a developer's machine must not change the cluster.
_PASSED_ON = ("HOME", "USER", "LOGNAME", "PATH", "LANG", "LC_ALL", "TZ")

#: Start fast and stay small: the daemons are idle most of the time and share few cores with jobs.
_JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
)
_ZOOKEEPER_OPTIONS = (
    *("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-Dzookeeper.admin.enableServer=false", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
)
_LONE_BROKER_HEAP, _BROKER_HEAP = "512m", "320m"
_HADOOP_JVM = (*_JVM, "-XX:MaxMetaspaceSize=192m", "-Xss512k")


@dataclass(frozen=True, slots=True)
class Daemons:
    """Starts the daemons of one cluster."""

    layout: Layout
    record: Record
    #: Folder of jars by role; called when a daemon of that class path is started.
    jars: Callable[[str], Path]

    def start(self, daemon: str) -> ProcessId:
        """Start a daemon (rm, zookeeper, a broker or a node), detached from this process."""
        if daemon in self.record.addresses.brokers:
            command = self._kafka_command(daemon)
        elif daemon == ZOOKEEPER:
            command = self._zookeeper_command()
        elif daemon == RESOURCE_MANAGER:
            command = self._hadoop_command(daemon, _RM_CLASS, "256m", self.layout.conf)
        else:
            conf = self.layout.node_conf(daemon)
            command = self._hadoop_command(daemon, _NM_CLASS, "160m", conf)
        if self.record.network is not None:
            network = Network(self.record.network, self.record.addresses)
            command = network.on_machine(daemon, self.layout.hosts, command)
        self.layout.logs.mkdir(parents=True, exist_ok=True)
        return spawn(command, self._environment(daemon), self.layout.log(daemon), self.layout.root)

    def _environment(self, daemon: str) -> dict[str, str]:
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {
            **passed_on,
            "HADOOP_COMMON_HOME": str(self.layout.bin.parent),
            "HOMEPORT_CACHE_DIR": str(self.layout.cache),
            "JAVA_HOME": self.record.java_home,
            "MALLOC_ARENA_MAX": "2",
            CLUSTER_VARIABLE: self.record.cluster_id,
            NODE_VARIABLE: daemon,
        }

    def _hadoop_command(self, daemon: str, main: str, heap: str, conf: Path) -> list[str]:
        layout = self.layout
        temporary = layout.temporary / daemon
        temporary.mkdir(parents=True, exist_ok=True)
        return [
            self._java,
            f"-Xmx{heap}",
            *_HADOOP_JVM,
            hosts_option(layout),
            f"-Djava.io.tmpdir={temporary}",
            f"-Dhadoop.log.dir={layout.logs}",
            f"-Dyarn.log.dir={layout.logs}",
            f"-Dhadoop.home.dir={layout.root}",
            "-cp",
            f"{conf}:{self.jars('hadoop')}/*",
            main,
        ]

    def _zookeeper_command(self) -> list[str]:
        folder, temporary = self.layout.zookeeper, self.layout.temporary / ZOOKEEPER
        for needed in (folder, temporary):
            needed.mkdir(parents=True, exist_ok=True)
        settings = folder / "zoo.cfg"
        address = self.record.addresses.zookeeper or ""
        settings.write_text(
            zookeeper_settings(folder / "data", address, ZOOKEEPER_PORT, TICK_MS), encoding="utf-8"
        )
        more = (f"-Djava.io.tmpdir={temporary}",)
        return zookeeper_command(self._java, self.jars("zookeeper"), settings, more)

    def _kafka_command(self, broker: str) -> list[str]:
        """Return a command that formats the storage if it is new, and then becomes the broker."""
        folder = self.layout.broker(broker)
        temporary = self.layout.temporary / broker
        for needed in (folder, temporary):
            needed.mkdir(parents=True, exist_ok=True)
        settings = folder / "server.properties"
        addresses = self.record.addresses.brokers
        text = server_properties(broker, addresses, folder / "data")
        settings.write_text(text, encoding="utf-8")
        java = [
            self._java,
            f"-Xmx{_LONE_BROKER_HEAP if len(addresses) == 1 else _BROKER_HEAP}",
            *_JVM,
            f"-Djava.io.tmpdir={temporary}",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS",
            "-cp",
            f"{self.jars('kafka')}/*",
        ]
        run_broker = shlex.join([*java, "kafka.Kafka", str(settings)])
        if (folder / "data" / "meta.properties").exists():
            return ["/bin/sh", "-c", f"exec {run_broker}"]
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
        # The same for all brokers of the cluster.
        identity = ["-t", kafka_cluster_id(bytes.fromhex(self.record.cluster_id))]
        identity += ["-c", str(settings)]
        format_storage = shlex.join([*java, *tool, *identity])
        return ["/bin/sh", "-c", f"{format_storage} && exec {run_broker}"]

    @property
    def _java(self) -> str:
        return f"{self.record.java_home}/bin/java"


def hosts_option(layout: Layout) -> str:
    """Return the JVM option that makes the node names known to a Java process."""
    return f"-Djdk.net.hosts.file={layout.hosts}"


def log_tail(log: Path) -> str:
    """Return the last lines of a log, indented, for an error message."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return "  (no output)"
    return "\n".join(f"  {line}" for line in lines[-_LOG_TAIL_LINES:]) or "  (no output)"


def zookeeper_settings(
    data: Path, address: str, port: int, tick_ms: int, prefix: str = "clientPort"
) -> str:
    """Return the settings of a ZooKeeper at ``address``, without a limit of connections."""
    return (
        f"tickTime={tick_ms}\ndataDir={data}\nmaxClientCnxns=0\nmaxSessionTimeout=60000\n"
        f"{prefix}={port}\n{prefix}Address={address}\n"
    )


def zookeeper_command(
    java: str, jars: Path, settings: Path, options: Sequence[str] = ()
) -> list[str]:
    """Return the command of a ZooKeeper; ``options`` follow the usual options of its JVM."""
    return [
        java,
        *_ZOOKEEPER_OPTIONS,
        "-cp",
        f"{jars}/*",
        *options,
        _ZOOKEEPER_CLASS,
        str(settings),
    ]
