"""The paths of a cluster's files, and the record of what runs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.net.addresses import Addresses
from homeport.local_cluster.processes import ProcessId, is_alive

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
#: Paths end up in shell scripts and in comma-separated Hadoop settings that know no quoting.
_SAFE_PATH = re.compile(r"[A-Za-z0-9._/+@~-]+")


class _In:
    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, layout: Layout, _owner: object) -> Path:
        return layout.root / self._name


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of the cluster `name` in a cache folder."""

    cache: Path
    name: str

    state = _In("state.json")
    """The record; it exists from before the first process starts until after the last ends."""
    hosts = _In("hosts")
    """Names to addresses, in the format of /etc/hosts."""
    conf = _In("conf")
    """Hadoop configuration of clients and of the ResourceManager."""
    bin = _In("bin")
    """Holds the `yarn` command that Skein asks for its class path."""
    skein = _In("skein")
    """Skein's own folder, instead of one in the user's home."""
    fs = _In("fs")
    """What Hadoop sees as its file system."""
    temporary = _In("tmp")
    """Temporary files of the daemons."""
    logs = _In("logs")
    """One file per daemon: rm.log, kafka.log, kafka2.log, zookeeper.log, nm1.log..."""
    brokers = _In("brokers")
    """Settings and data of all brokers."""
    zookeeper = _In("zookeeper")
    """Settings and data of ZooKeeper."""

    def __post_init__(self) -> None:
        """Refuse names and folders that Hadoop or a shell would misread."""
        if not _NAME.fullmatch(self.name):
            raise ClusterError(
                f"cluster name {self.name!r} must be 1 to 40 lower-case letters, digits and "
                "hyphens, not beginning with a hyphen"
            )
        if not _SAFE_PATH.fullmatch(str(self.cache)):
            raise ClusterError(
                f"the cache folder {str(self.cache)!r} has a character that Hadoop's settings "
                "cannot carry; set HOMEPORT_CACHE_DIR to a path of letters, digits and ._+@~-"
            )

    @property
    def root(self) -> Path:
        """Return everything of this cluster but its lock."""
        return self.cache / "clusters" / self.name

    @property
    def lock(self) -> Path:
        """Return the file whose lock the command holds that changes the cluster."""
        return self.cache / "clusters" / f".{self.name}.lock"

    def broker(self, broker: str) -> Path:
        """Return the folder with settings and data of one broker."""
        return self.brokers / broker

    def log(self, daemon: str) -> Path:
        """Return the file with the output of one daemon."""
        return self.logs / f"{daemon}.log"

    def node(self, node: str) -> Path:
        """Return the folder of one NodeManager."""
        return self.root / "nodes" / node

    def node_conf(self, node: str) -> Path:
        """Return the folder with the Hadoop configuration of one NodeManager."""
        return self.node(node) / "conf"

    def node_local(self, node: str) -> Path:
        """Return the folder with the working directories of a node's containers."""
        return self.node(node) / "local"

    def node_logs(self, node: str) -> Path:
        """Return the folder of container logs: <application>/<container>/<file>."""
        return self.node(node) / "logs"

    def node_state(self, node: str) -> Path:
        """Return the LOGGED_STORE_BASE_DIR of a node's containers."""
        return self.node(node) / "state"


def name_of(conf: Path) -> str | None:
    """Return the name of the cluster whose ``Layout.conf`` this folder is; None: it is none."""
    try:
        layout = Layout(conf.parent.parent.parent, conf.parent.name)
    except ClusterError:
        return None
    return layout.name if layout.conf == conf and layout.state.is_file() else None


class Record(Struct, frozen=True):
    """Enough about a cluster to use it or to end it.

    ``owner``: the process that called `up`. ``daemons``: {daemon: its last known process}.
    ``kept``: its owner has left it up on purpose; another command takes it down. ``network``: how
    the names of its network namespaces begin; None: its nodes are on loopback.
    ``keeps_containers``: its containers outlive their NodeManagers.
    """

    cluster_id: str
    phase: Literal["starting", "up"]
    addresses: Addresses
    java_home: str
    owner: ProcessId
    daemons: dict[str, ProcessId]
    kept: bool = False
    network: str | None = None
    keeps_containers: bool = False

    @property
    def living_brokers(self) -> dict[str, ProcessId]:
        """Return {name: process} of the brokers that live; paused ones do."""
        known = {name: self.daemons.get(name) for name in self.addresses.brokers}
        return {name: p for name, p in known.items() if p is not None and is_alive(p)}


def write_record(path: Path, record: Record) -> None:
    """Replace the record at once: a reader sees the old or the new one, whole."""
    body = msgspec.to_builtins(record)
    # The file has no level of its own for the addresses.
    body |= body.pop("addresses")
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    partial.replace(path)


def read_record(path: Path) -> Record | None:
    """Return the record; None where there is none. ClusterError: the file is not a record."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert({**body, "addresses": body}, Record)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise ClusterError(
            f"{path} is not a cluster record ({error!r}); end its processes and delete the folder"
        ) from error
