"""A network and ports on loopback that no other program has, for a new cluster."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Mapping

from docker_cluster import packet_rules
from docker_cluster.engine import DockerError, Engine

PORTS = {
    "KAFKA_PORT": 29092,
    "RM_PORT": 28088,
    "ZK_PORT": 22181,
    "PROMETHEUS_PORT": 29990,
    "GRAFANA_PORT": 23000,
}
"""Ports on loopback that are tried first; the variables HOMEPORT_DOCKER_<name> set others."""
_NETS = range(64, 224)


def free_net(running: Engine) -> str:
    """Return the first three numbers of a network of 256 addresses that no other one has."""
    listed = running.run("network", "ls", "-q").split()
    taken = [ipaddress.ip_interface(packet_rules.OWN_BRIDGE).network]
    for entry in json.loads(running.run("network", "inspect", *listed)) if listed else []:
        configured = (entry.get("IPAM") or {}).get("Config") or []
        taken += [ipaddress.ip_network(c["Subnet"]) for c in configured if c.get("Subnet")]
    taken += packet_rules.routed() + packet_rules.translated()
    for number in _NETS:
        net = ipaddress.ip_network(f"172.28.{number}.0/24")
        if not any(net.overlaps(other) for other in taken if other.version == net.version):
            return f"172.28.{number}"
    raise DockerError(
        "every network from 172.28.64.0/24 to 172.28.223.0/24 is taken: end clusters of other "
        "clones (docker/down); iptables -t nat -S shows rules of engines that were killed"
    )


def free_ports(environment: Mapping[str, str]) -> dict[str, int]:
    """Return a port on loopback for each: the one that the user names, else the first free one.

    DockerError: the one that the user names is no port, or is taken.
    """
    found: dict[str, int] = {}
    for name, first in PORTS.items():
        variable = f"HOMEPORT_DOCKER_{name}"
        given = environment.get(variable, "")
        if given:
            if not given.isdigit() or not 0 < int(given) < 2**16:
                raise DockerError(f"{variable} = {given!r}: it must be a port from 1 to 65535")
            if not _is_free(int(given)):
                raise DockerError(
                    f"{variable} = {given}: the port is taken: set another one, or unset it for any"
                )
            found[name] = int(given)
        else:
            found[name] = next(p for p in range(first, first + 900) if _is_free(p))
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
