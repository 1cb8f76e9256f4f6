"""Address blocks and the names of nodes."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.net.addresses import (
    Addresses,
    block_of,
    node_addresses,
    node_names,
    reserved,
    reserved_network,
)


def test_nodes_are_numbered_from_one_and_addressed_from_eleven() -> None:
    """nm1 has .11, nm2 has .12."""
    assert node_addresses("127.70.3", node_names(2)) == {"nm1": "127.70.3.11", "nm2": "127.70.3.12"}


def test_every_port_of_every_daemon_is_probed() -> None:
    """Two ports of the broker and three of each node."""
    assert Addresses("127.70.3", {"nm1": "127.70.3.11"}, {}).endpoints == (
        ("127.70.3.2", 9092),
        ("127.70.3.2", 9093),
        ("127.70.3.11", 8041),
        ("127.70.3.11", 8040),
        ("127.70.3.11", 8042),
    )


def test_brokers_are_numbered_from_one_and_all_of_them_are_named_to_clients() -> None:
    """The first has .2, and .3 is the ResourceManager's in a network of the cluster's own."""
    addresses = Addresses("127.70.3", {}, {}, broker_count=3)
    assert addresses.brokers == {
        "kafka": "127.70.3.2",
        "kafka2": "127.70.3.4",
        "kafka3": "127.70.3.5",
    }
    assert addresses.bootstrap_servers == "127.70.3.2:9092,127.70.3.4:9092,127.70.3.5:9092"
    assert len(addresses.endpoints) == 6


def test_clients_get_addresses_not_names() -> None:
    """Broker and ResourceManager are reachable without resolving a name."""
    addresses = Addresses(block="127.70.3", nodes={}, rm_ports={"web": 28001})
    assert addresses.bootstrap_servers == "127.70.3.2:9092"
    assert addresses.rm_url == "http://127.0.0.1:28001"


def test_networks_chosen_at_once_differ_and_no_route_of_the_machine_touches_them() -> None:
    """Where there is a route to all blocks, one line says so."""
    with reserved_network(("nm1",), []) as first, reserved_network(("nm1",), []) as second:
        assert first.block != second.block
        assert first.rm_url == f"http://{first.block}.3:8088"
    half = ipaddress.IPv4Network("10.64.0.0/11")
    with reserved_network((), [half]) as other:
        assert ipaddress.IPv4Address(other.brokers["kafka"]) not in half
    routes = [ipaddress.IPv4Network("10.0.0.0/8")]
    with (
        pytest.raises(ClusterError, match=r"no free block .*ip route shows them"),
        reserved_network((), routes),
    ):
        pytest.fail("a block that the machine has a route to")


def test_a_cluster_finds_its_addresses_again_also_after_a_server_that_just_ended() -> None:
    """Connections that linger on a port do not keep its owner from it."""
    owner = "/a folder/of this test"
    with reserved((), owner=owner) as addresses:
        assert addresses.block == block_of(owner)
    place = (addresses.brokers["kafka"], 9092)
    with (
        socket.create_server(place) as server,
        socket.create_connection(place) as client,
        server.accept()[0] as accepted,
    ):
        accepted.close()  # its side lingers, as it ends first
        assert client.recv(1) == b""
    with reserved((), owner=owner) as again:
        assert again.block == addresses.block


def test_a_block_that_is_taken_is_left_alone() -> None:
    """By a cluster that starts at the same time, and by whatever listens."""
    owner = "/another folder/of this test"
    with reserved((), owner=owner) as first, reserved((), owner=owner) as second:
        assert first.block == block_of(owner) != second.block
    listening = socket.create_server((first.brokers["kafka"], 9093))
    with listening, reserved((), owner=owner) as third:
        assert third.block != first.block
