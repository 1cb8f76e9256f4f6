"""Reserves addresses and ports that no other cluster on this machine has.

Every cluster has a block 127.A.B.0/24: all of 127.0.0.0/8 is loopback on Linux and needs no set-up.
A cluster tries the block that follows from its name first, so it usually gets its former addresses
again. A chosen port stays bound, without listening, until its daemon listens on it; a
socket that allows reuse does not disturb the daemon. Of two clusters that try a block at once, one
gets its holder's address, on which nothing listens; the other one tries the next block.

A cluster whose nodes have a network of their own has a block 10.A.B.0/24 instead, to which this
machine has no route yet, and all its ports.
"""

import contextlib
import hashlib
import ipaddress
import itertools
import random
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from homeport.local_cluster.errors import ClusterError

KAFKA_PORT = 9092
CONTROLLER_PORT = 9093
ZOOKEEPER = "zookeeper"
ZOOKEEPER_PORT = 2181
NM_PORT = 8041
LOCALIZER_PORT = 8040
NM_WEB_PORT = 8042
RM_ADDRESS = "127.0.0.1"
RM_SERVICES = ("client", "scheduler", "tracker", "admin", "web")

#: YARN's own defaults, for a ResourceManager that has all ports of its address.
_RM_PORTS = dict(zip(RM_SERVICES, (8032, 8030, 8031, 8033, 8088), strict=True))

_BROKER_OCTETS = (2, 4, 5, 6, 7)
_HOLDER_OCTET = 1
_RM_OCTET = 3
_ZOOKEEPER_OCTET = 8
_FIRST_NODE_OCTET = 11
_SECOND_OCTETS = range(64, 128)
_TRIES = 50
_LOWEST_RM_PORT = 20000
_PORT_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")

MAX_NODES = 200
#: The nodes of a network of their own share half a block.
MAX_NETWORK_NODES = 100
MAX_BROKERS = len(_BROKER_OCTETS)


class Addresses(
    Struct, frozen=True, rename={"broker_count": "brokers", "has_zookeeper": "zookeeper"}
):
    """All addresses of one cluster.

    ``block``: the first three octets, as in ``127.77.12``. ``nodes``: {name: address}, in order.
    ``rm_ports``: {service of the ResourceManager: port}; empty in a cluster without nodes.
    """

    block: str
    nodes: dict[str, str]
    rm_ports: dict[str, int]
    rm: str = RM_ADDRESS
    broker_count: int = 1
    has_zookeeper: bool = False

    @property
    def brokers(self) -> dict[str, str]:
        """Return {kafka, kafka2...: address of the broker and its controller}, in order of ids."""
        octets = enumerate(_BROKER_OCTETS[: self.broker_count], 1)
        return {
            "kafka" if number == 1 else f"kafka{number}": f"{self.block}.{octet}"
            for number, octet in octets
        }

    @property
    def bootstrap_servers(self) -> str:
        """Return what a Kafka client connects to: all brokers."""
        return ",".join(f"{address}:{KAFKA_PORT}" for address in self.brokers.values())

    @property
    def zookeeper(self) -> str | None:
        """Return the address of ZooKeeper, None where the cluster has none."""
        return f"{self.block}.{_ZOOKEEPER_OCTET}" if self.has_zookeeper else None

    @property
    def zookeeper_connect(self) -> str | None:
        """Return what a client of ZooKeeper connects to."""
        return f"{self.zookeeper}:{ZOOKEEPER_PORT}" if self.has_zookeeper else None

    @property
    def rm_url(self) -> str:
        """Return the base of the ResourceManager's web service."""
        return f"http://{self.rm}:{self.rm_ports['web']}"

    @property
    def endpoints(self) -> tuple[tuple[str, int], ...]:
        """Return every (address, port) of the block that a daemon of the cluster will listen on."""
        broker_ports, node_ports = (
            (KAFKA_PORT, CONTROLLER_PORT),
            (NM_PORT, LOCALIZER_PORT, NM_WEB_PORT),
        )
        zookeeper = [] if self.zookeeper is None else [(self.zookeeper, ZOOKEEPER_PORT)]
        return (
            *((address, port) for address in self.brokers.values() for port in broker_ports),
            *((address, port) for address in self.nodes.values() for port in node_ports),
            *zookeeper,
        )


def node_names(count: int) -> tuple[str, ...]:
    """Return nm1 to nmN."""
    return tuple(f"nm{number}" for number in range(1, count + 1))


def node_addresses(block: str, nodes: Sequence[str]) -> dict[str, str]:
    """Return the address of each node: the first has .11, the next .12 and so on."""
    return {node: f"{block}.{_FIRST_NODE_OCTET + index}" for index, node in enumerate(nodes)}


def block_of(owner: str) -> str:
    """Return the block that a cluster tries first, always the same for ``owner``, a unique name."""
    digest = hashlib.sha256(owner.encode()).digest()
    return f"127.{_SECOND_OCTETS[digest[0] % len(_SECOND_OCTETS)]}.{digest[1]}"


@contextlib.contextmanager
def reserved(
    nodes: Sequence[str], brokers: int = 1, *, zookeeper: bool = False, owner: str = ""
) -> Iterator[Addresses]:
    """Choose addresses for a cluster, and reserve them inside the `with` block.

    The same ``owner`` gets the same ones again, if they are free. The daemons must listen when the
    `with` block ends. ClusterError: no block or no port is free.
    """

    def at(block: str) -> Addresses:
        nodes_there = node_addresses(block, nodes)
        return Addresses(block, nodes_there, {}, broker_count=brokers, has_zookeeper=zookeeper)

    with contextlib.ExitStack() as held:
        addresses = _reserve_block(held, at, block_of(owner))
        yield replace(addresses, rm_ports=_reserve_rm_ports(held)) if nodes else addresses


@contextlib.contextmanager
def reserved_network(
    nodes: Sequence[str],
    routes: Collection[ipaddress.IPv4Network],
    brokers: int = 1,
    *,
    zookeeper: bool = False,
) -> Iterator[Addresses]:
    """Choose a private block without a route on this machine; reserve it inside the `with` block.

    It must have a route when the `with` block ends. ClusterError: no block is free.
    """
    chance = random.Random()  # noqa: S311 - addresses are not secrets
    for _ in range(_TRIES):
        block = f"10.{chance.choice(_SECOND_OCTETS)}.{chance.randrange(256)}"
        wanted = ipaddress.IPv4Network(f"{block}.0/24")
        if any(route.overlaps(wanted) for route in routes):
            continue
        with socket.socket(socket.AF_UNIX) as holder:
            try:
                # A name without a file: free again when this process ends, however it ends.
                holder.bind(f"\0homeport-{block}")
            except OSError:
                continue
            yield Addresses(
                block=block,
                nodes=node_addresses(block, nodes),
                rm_ports=_RM_PORTS if nodes else {},
                rm=f"{block}.{_RM_OCTET}",
                broker_count=brokers,
                has_zookeeper=zookeeper,
            )
            return
    raise ClusterError(
        "no free block of addresses in 10.64.0.0/10: this machine has routes to all that were "
        "tried (ip route shows them); start the cluster without namespaces"
    )


def _reserve_block(
    held: contextlib.ExitStack, at: Callable[[str], Addresses], first: str
) -> Addresses:
    """Hold all ports of a free block, ``first`` if it is free; return the addresses ``at`` it."""
    chance = random.Random()  # noqa: S311 - addresses are not secrets
    blocks = (f"127.{chance.choice(_SECOND_OCTETS)}.{chance.randrange(256)}" for _ in range(_TRIES))
    for addresses in map(at, itertools.chain([first], blocks)):
        with contextlib.ExitStack() as attempt:
            try:
                attempt.enter_context(_hold(f"{addresses.block}.{_HOLDER_OCTET}", KAFKA_PORT))
                for address, port in addresses.endpoints:
                    attempt.enter_context(_hold(address, port, after_another=True))
            except OSError as error:
                failure = error
                continue
            held.push(attempt.pop_all())
            return addresses
    wanted = sorted({port for _, port in at(first).endpoints})
    raise ClusterError(
        f"no free block of loopback addresses for ports {wanted} ({failure}); "
        "stop the program that listens on one of them on all addresses (ss -ltnp shows it)"
    )


def _reserve_rm_ports(held: contextlib.ExitStack) -> dict[str, int]:
    highest = _first_ephemeral_port()
    candidates = list(range(min(_LOWEST_RM_PORT, highest // 2), highest))
    random.shuffle(candidates)
    ports: dict[str, int] = {}
    for port in candidates:
        with contextlib.suppress(OSError):
            held.enter_context(_hold(RM_ADDRESS, port))
            ports[RM_SERVICES[len(ports)]] = port
        if len(ports) == len(RM_SERVICES):
            return ports
    raise ClusterError(
        f"no free ports on {RM_ADDRESS} below {highest} for the ResourceManager; "
        "close programs that listen there (ss -ltn shows them)"
    )


def _first_ephemeral_port() -> int:
    return int(_PORT_RANGE_FILE.read_text(encoding="ascii").split()[0])


def _hold(address: str, port: int, *, after_another: bool = False) -> socket.socket:
    """Bind a free port; a daemon that allows reuse can still listen on it.

    ``after_another``: also where connections of an ended server linger, or another holder is bound
    without listening.
    """
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if after_another:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((address, port))
    except OSError:
        holder.close()
        raise
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return holder
