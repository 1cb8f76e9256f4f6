"""The private network of a cluster: each daemon has its own address, as on its own machine.

Each place (kafka, rm, nm1...) is a network namespace with an address 10.A.B.x. A bridge in one more
namespace, the hub, joins them. A process in a place has its name as host name, and the cluster's
hosts file as /etc/hosts. The client, which is this machine, is one hop away: its own network gets
one veth to the hub, with a route, and nothing else.

The names of namespaces and veth begin with the network's name, which is in the cluster's record
before the first of them is made: whatever happens, all of them can be found by the record.
"""

import ipaddress
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from homeport.job_coordinator.parent_death import run_child
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.net.addresses import ZOOKEEPER, Addresses

CLIENT = "client"
TOOLS = {"ip": "iproute2", "iptables": "iptables", "nsenter": "util-linux", "unshare": "util-linux"}
"""{program: Debian package}"""

_HUB = "hub"
_NAMESPACES = Path("/run/netns")
_TOOL_LIMIT_S = 30.0
#: As root's PATH may lack the folders of the system's programs.
_SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/bin:/bin"

#: The half of the block that the bridge joins, and the link between hub and client.
_BRIDGE_OCTET, _INNER_BITS = 1, 25
_CLIENT_OCTET, _HUB_OCTET, _OUTER_OCTET, _OUTER_BITS = 253, 254, 252, 30

#: Arguments: host name, hosts file, command. The process keeps its pid all the way.
_SETTLE = 'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'


@dataclass(frozen=True, slots=True)
class Network:
    """The network of one cluster."""

    name: str
    addresses: Addresses

    @property
    def machines(self) -> dict[str, str]:
        """Return {place: address} of all that daemons run on."""
        addresses = self.addresses
        rm = {"rm": addresses.rm} if addresses.nodes else {}
        zookeeper = {} if addresses.zookeeper is None else {ZOOKEEPER: addresses.zookeeper}
        return {**addresses.brokers, **zookeeper, **rm, **addresses.nodes}

    @property
    def places(self) -> dict[str, str]:
        """Return {place: address}, the client's too."""
        return {**self.machines, CLIENT: f"{self.addresses.block}.{_CLIENT_OCTET}"}

    def namespace(self, place: str) -> str:
        """Return the namespace with the traffic of the place: its own; for the client, the hub."""
        return f"{self.name}-{_HUB if place == CLIENT else place}"

    def at(self, place: str, command: Sequence[str]) -> list[str]:
        """Return ``command``, wrapped to run in the network of the place."""
        path = _NAMESPACES / self.namespace(place)
        return [tool("nsenter"), f"--net={path}", *command]

    def on_machine(self, place: str, hosts: Path, command: Sequence[str]) -> list[str]:
        """Return ``command``, wrapped to run as on a machine ``place``; the pid stays the same."""
        settled = [tool("unshare"), "--uts", "--mount", "--propagation", "slave"]
        settle = ["/bin/sh", "-c", _SETTLE, "sh", place, str(hosts)]
        return self.at(place, [*settled, *settle, *command])

    def make(self) -> None:
        """Make all places and their connections.

        ClusterError: the system refused something; `remove` removes what was made.
        """
        block, hub = self.addresses.block, self.namespace(CLIENT)
        inner, outer = f"{block}.0/{_INNER_BITS}", f"{block}.{_OUTER_OCTET}/{_OUTER_BITS}"
        bridge, behind = f"{block}.{_BRIDGE_OCTET}", f"{block}.{_HUB_OCTET}"
        run([tool("ip"), "netns", "add", hub])
        self._batch(hub, "link set lo up", "link add bridge type bridge", "link set bridge up")
        self._batch(hub, f"addr add {bridge}/{_INNER_BITS} dev bridge")
        forward = "echo 1 > /proc/sys/net/ipv4/ip_forward"
        run(self.at(CLIENT, ["/bin/sh", "-c", forward]))
        for place, address in self.machines.items():
            namespace = self.namespace(place)
            run([tool("ip"), "netns", "add", namespace])
            pair = f"type veth peer name {place} netns {hub}".split()
            run([tool("ip"), "link", "add", "eth0", "netns", namespace, *pair])
            self._batch(
                namespace,
                "link set lo up",
                f"addr add {address}/{_INNER_BITS} dev eth0",
                "link set eth0 up",
                f"route add {outer} via {bridge}",
            )
            self._batch(hub, f"link set {place} master bridge", f"link set {place} up")
        run([tool("ip"), *f"link add {self.name} type veth peer name client netns {hub}".split()])
        self._batch(hub, f"addr add {behind}/{_OUTER_BITS} dev client", "link set client up")
        self._batch(
            None,
            f"addr add {self.places[CLIENT]}/{_OUTER_BITS} dev {self.name}",
            f"link set {self.name} up",
            f"route add {inner} via {behind} src {self.places[CLIENT]}",
        )

    @staticmethod
    def _batch(namespace: str | None, *lines: str) -> None:
        """Run commands of `ip` in a namespace, or in this machine's own network."""
        inside = [] if namespace is None else ["-netns", namespace]
        run([tool("ip"), *inside, "-batch", "-"], "\n".join(lines) + "\n")


def remains(name: str) -> list[str]:
    """Return the existing parts of the network: its link, then its namespaces."""
    link = [name] if Path("/sys/class/net", name).exists() else []
    return link + sorted(path.name for path in _NAMESPACES.glob(f"{name}-*"))


def remove(name: str) -> None:
    """Remove the network, whose processes have ended.

    ClusterError: the system refused to remove something.
    """
    for found in remains(name):
        kind = ["link"] if found == name else ["netns"]
        run([tool("ip"), *kind, "delete", found])


def routes() -> list[ipaddress.IPv4Network]:
    """Return the destinations of this machine's routes, without the default route."""
    text = run([tool("ip"), "-4", "-json", "route", "show", "table", "all"])
    found = (route["dst"] for route in json.loads(text or "[]"))
    return [ipaddress.IPv4Network(dst, strict=False) for dst in found if dst != "default"]


def check() -> None:
    """Check that this process can make networks, as far as possible without making one.

    ClusterError: one line with what is missing, and the remedy.
    """
    missing = [name for name in TOOLS if _found(name) is None]
    if missing:
        packages = " ".join(missing_packages())
        raise ClusterError(
            f"nodes with a network of their own need {', '.join(missing)}, which is not installed; "
            f"install it (Debian: apt-get install {packages}) or start the cluster on loopback "
            "addresses, without namespaces"
        )
    if os.geteuid() != 0:
        raise ClusterError(
            "only root may make network namespaces; start the cluster as root, or on loopback "
            "addresses, without namespaces"
        )
    try:
        run([tool("unshare"), "--net", "--mount", "--uts", "true"])
    except ClusterError as error:
        raise ClusterError(
            f"this root may make no network namespaces ({error}); give it CAP_SYS_ADMIN and "
            "CAP_NET_ADMIN, or start the cluster on loopback addresses, without namespaces"
        ) from None


def missing_packages() -> list[str]:
    """Return the Debian packages of the missing TOOLS."""
    return sorted({package for name, package in TOOLS.items() if _found(name) is None})


def tool(name: str) -> str:
    """Return the path of one of the TOOLS, or the bare name where it cannot be found."""
    return _found(name) or name


def run(command: Sequence[str], stated: str = "") -> str:
    """Run the command with ``stated`` as its standard input, and return its output.

    ClusterError: it failed; the message has its error.
    """
    try:
        done = run_child(command, _TOOL_LIMIT_S, given=stated.encode())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{command[0]} cannot be run ({error})") from error
    if done.returncode != 0:
        words = " ".join((done.stderr or done.stdout).decode(errors="replace").split())
        raise ClusterError(f"{' '.join(command)} failed with code {done.returncode}: {words}")
    return done.stdout.decode(errors="replace")


def _found(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=_SYSTEM_FOLDERS)
