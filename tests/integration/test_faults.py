"""Each fault of the vocabulary, by a real probe: it works, is silently lost, and works again.

Most need no daemon: a network with two nodes, rm and kafka in it, where a small server stands for
what a machine runs. Kill and start are shown on the real cluster.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import TypeVar

import pytest
from clusters_under_test import LocalUnderTest
from msgspec.structs import replace
from waiting import until

from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster, remove_abandoned
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.kafka_broker import working
from homeport.local_cluster.layout import Layout, Record, read_record, write_record
from homeport.local_cluster.net import delay
from homeport.local_cluster.net import network as networks
from homeport.local_cluster.net.addresses import Addresses, node_names, reserved_network
from homeport.local_cluster.net.network import CLIENT, Network
from tests.faults import Faults

T = TypeVar("T")

HOMEPORT_LOCAL = [sys.executable, "-m", "homeport.cli.main", "local"]

PORT = 8041
PLACES = ("kafka", "rm", "nm1", "nm2", CLIENT)
SILENCE_S = 0.5
HEALED_S = 30.0
DELAY_MS = 200

#: Prints when it listens; sends back what it hears, on any number of connections.
ECHO = """
import socket, sys, threading
def answer(connection):
    while heard := connection.recv(100):
        connection.sendall(heard)
with socket.create_server(("", int(sys.argv[1]))) as server:
    print("listens", flush=True)
    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
"""
NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of setns(2)."""


def as_at(machines: Machines, place: str, call: Callable[[], T]) -> T:
    """What ``call`` returns on a thread of its own, whose sockets are the place's."""
    path = Path("/run/netns", machines.network.namespace(place))

    def run() -> T:
        if place != CLIENT:
            with path.open("rb") as namespace:
                libc = ctypes.CDLL(None, use_errno=True)
                assert libc.setns(namespace.fileno(), NEW_NETWORK) == 0, os.strerror(
                    ctypes.get_errno()
                )
        return call()

    with ThreadPoolExecutor(1) as thread:  # it ends with the block, and its namespace with it
        return thread.submit(run).result()


class Machines:
    """The places of a network without daemons, each with a server that stands for what it runs."""

    def __init__(self, folder: Path, network: Network, cluster_id: str) -> None:
        self.network = network
        self.layout = Layout(folder, "machines")
        self.layout.logs.mkdir(parents=True)
        self.record = Record(
            cluster_id=cluster_id,
            phase="up",
            addresses=network.addresses,
            java_home="/nonexistent",
            owner=processes.own(),
            daemons={},
            network=network.name,
        )

    def start(self) -> None:
        """In each machine a server listens; the cluster's record says that it is its daemon."""
        write_record(self.layout.state, self.record)
        self.network.make()
        self.layout.hosts.write_text("127.0.0.1 localhost\n", encoding="utf-8")
        started = {place: self._serve(place) for place in self.network.machines}
        self.record = replace(self.record, daemons=started)
        write_record(self.layout.state, self.record)

    def _serve(self, place: str) -> processes.ProcessId:
        command = [sys.executable, "-c", ECHO, str(PORT)]
        marks = {
            processes.CLUSTER_VARIABLE: self.record.cluster_id,
            processes.NODE_VARIABLE: place,
            "PATH": os.environ["PATH"],
        }
        command = self.network.on_machine(place, self.layout.hosts, command)
        log = self.layout.log(place)
        started = processes.spawn(command, marks, log, self.layout.root)
        until(lambda: "listens" in log.read_text(), log.read_text, HEALED_S)
        return started

    def faults(self) -> Faults:
        """Faults of these machines."""
        cluster = LocalUnderTest("machines", cache=self.layout.cache)
        cluster._node_names = tuple(self.network.addresses.nodes)
        return Faults(cluster)

    def hears(self, caller: str, server: str, within_s: float = SILENCE_S) -> bool:
        """Whether a call is answered; if not, it is lost without a word. A call needs both ways."""
        address = (self.network.places[server], PORT)

        def call() -> bool:
            try:
                with socket.create_connection(address, within_s) as link:
                    link.sendall(b"?")
                    return link.recv(1) == b"?"
            except TimeoutError:
                return False

        return as_at(self, caller, call)

    def answered(self) -> set[frozenset[str]]:
        """The pairs that reach each other; no server runs at the client's place.

        A pair in which only one is answered is a fault of the test: a call needs both ways.
        """
        calls = [(a, b) for a in PLACES for b in self.network.machines if a != b]
        with ThreadPoolExecutor(len(calls)) as threads:
            answers = list(threads.map(lambda call: self.hears(*call), calls))
        refused = {frozenset(call) for call, ok in zip(calls, answers, strict=True) if not ok}
        heard = {frozenset(call) for call, ok in zip(calls, answers, strict=True) if ok}
        assert not refused & heard, (refused, heard)
        return heard


ALL_PAIRS = {frozenset((a, b)) for a in PLACES for b in PLACES if a != b}


def pairs_with(*places: str) -> set[frozenset[str]]:
    """All pairs that one of the places is in."""
    return {pair for pair in ALL_PAIRS if pair & set(places)}


@pytest.fixture(scope="module")
def machines(namespaces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two nodes, rm and kafka, as far as the network goes; afterwards nothing is left of it."""
    del namespaces
    cluster_id = uuid.uuid4().hex
    with reserved_network(node_names(2), networks.routes()) as addresses:
        own = Network(f"hp{cluster_id[:8]}", addresses)
        made = Machines(tmp_path_factory.mktemp("machines"), own, cluster_id)
        try:
            made.start()
            yield made
        finally:
            processes.kill_all(lambda: processes.of_cluster(cluster_id))
            networks.remove(own.name)
    assert networks.remains(own.name) == []


@pytest.fixture
def broken(machines: Machines) -> Iterator[Faults]:
    """Faults of the machines, all healed after the test."""
    made = machines.faults()
    yield made
    made.heal()
    assert machines.answered() == ALL_PAIRS


def test_all_hear_each_other_and_a_place_is_cut_from_all(
    machines: Machines, broken: Faults
) -> None:
    """Cut off, it hears no node and no node hears it; others go on; healed, all is as before."""
    assert machines.answered() == ALL_PAIRS
    broken.cut("nm1")
    assert machines.answered() == ALL_PAIRS - pairs_with("nm1")
    assert all(broken.is_cut("nm1", p) and broken.is_cut(p, "nm1") for p in PLACES if p != "nm1")
    assert not broken.is_cut("nm2", "rm")
    lost = [*permutations(("nm1", "kafka"), 2), *permutations(("nm1", CLIENT), 2)]
    assert not any(arrives(machines, *pair) for pair in lost)
    broken.cut("nm2")
    assert machines.answered() == ALL_PAIRS - pairs_with("nm1", "nm2")
    broken.heal("nm1")  # whatever touched it: nm2 is still cut from those that are left
    pairs = pairs_with("nm2") - {frozenset(("nm1", "nm2"))}
    assert machines.answered() == ALL_PAIRS - pairs


def test_two_places_are_cut_from_each_other(machines: Machines, broken: Faults) -> None:
    """Everybody else hears both; so also where one of the two is the client."""
    broken.cut_pair("nm1", "kafka")
    broken.cut_pair(CLIENT, "nm2")
    cut = {frozenset(("nm1", "kafka")), frozenset((CLIENT, "nm2"))}
    assert machines.answered() == ALL_PAIRS - cut
    lost = [*permutations(("nm1", "kafka"), 2), *permutations(("nm2", CLIENT), 2)]
    assert not any(arrives(machines, *pair) for pair in lost)
    broken.heal("kafka")
    assert machines.answered() == ALL_PAIRS - {frozenset((CLIENT, "nm2"))}


@pytest.mark.parametrize("client_is", ["sender", "receiver", "neither"])
def test_one_way_is_cut(machines: Machines, broken: Faults, client_is: str) -> None:
    """What one sends is lost, what the other sends arrives: seen in a connection that stands."""
    sender = CLIENT if client_is == "sender" else "nm1"
    receiver = CLIENT if client_is == "receiver" else "nm2"
    broken.cut_one_way(sender, receiver)
    assert broken.is_cut(sender, receiver)
    assert not broken.is_cut(receiver, sender)
    assert machines.answered() == ALL_PAIRS - {frozenset((sender, receiver))}
    assert arrives(machines, receiver, sender)
    assert not arrives(machines, sender, receiver)


def arrives(machines: Machines, sender: str, receiver: str) -> bool:
    """Whether datagrams of the sender reach the receiver: they need no answer."""
    listener = as_at(machines, receiver, lambda: socket.socket(type=socket.SOCK_DGRAM))
    caller = as_at(machines, sender, lambda: socket.socket(type=socket.SOCK_DGRAM))
    with listener, caller:
        address = (machines.network.places[receiver], 0)
        listener.bind(address)
        listener.settimeout(SILENCE_S)
        caller.sendto(b"news", listener.getsockname())
        try:
            return listener.recv(9) == b"news"
        except TimeoutError:
            return False


def test_a_place_that_hears_all_is_heard_by_none(machines: Machines, broken: Faults) -> None:
    """One way to all: what it sends is lost, what the others send arrives."""
    broken.cut_one_way("nm1", "all")
    assert machines.answered() == ALL_PAIRS - pairs_with("nm1")
    assert all(broken.is_cut("nm1", p) for p in PLACES if p != "nm1")
    assert not any(broken.is_cut(p, "nm1") for p in PLACES if p != "nm1")
    assert arrives(machines, "rm", "nm1")


def test_a_connection_outlives_a_short_cut(machines: Machines, broken: Faults) -> None:
    """It is not closed: what was sent meanwhile arrives when the cut is over."""
    address = (machines.network.places["nm1"], PORT)
    with socket.create_connection(address, HEALED_S) as link:
        link.sendall(b"a")
        assert link.recv(1) == b"a"
        broken.cut("nm1")
        link.sendall(b"b")
        link.settimeout(SILENCE_S)
        with pytest.raises(TimeoutError):
            link.recv(1)
        broken.heal()
        link.settimeout(HEALED_S)
        assert link.recv(1) == b"b"


@pytest.mark.parametrize("place", ["nm1", CLIENT])
def test_packets_are_late(machines: Machines, broken: Faults, place: str) -> None:
    """Each packet of the place takes so much longer, and no other; healed, none does."""
    assert not is_late(machines)
    broken.slow(place, DELAY_MS)
    assert is_late(machines)
    assert machines.hears("nm2", "rm", HEALED_S)
    broken.slow(place, 0)
    assert not is_late(machines)
    broken.slow(place, DELAY_MS)
    broken.heal(place)
    assert not is_late(machines)
    assert processes.of_cluster(machines.record.cluster_id, f"delay-{place}") == {}


def is_late(machines: Machines) -> bool:
    """Whether a call of the client to nm1 takes as long as two late packets of either side do.

    The quickest of several counts: a busy machine is late by itself, but hardly every time.
    """
    times = []
    for _ in range(10):
        began = time.monotonic()
        assert machines.hears(CLIENT, "nm1", HEALED_S)
        times.append(time.monotonic() - began)
    return min(times) >= 2 * DELAY_MS / 1000


def test_packets_that_cannot_be_held_back_are_as_before(machines: Machines, broken: Faults) -> None:
    """The kernel's queue is taken by another: one says so, and nothing of the attempt is left."""
    link = as_at(machines, "nm1", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12))
    with link:
        link.bind((0, 0))
        delay.bind(link)
        with pytest.raises(ClusterError, match="packets of nm1 cannot be held back"):
            broken.slow("nm1", DELAY_MS)
    assert processes.of_cluster(machines.record.cluster_id, "delay-nm1") == {}
    assert not is_late(machines)
    broken.slow("nm1", DELAY_MS)
    assert is_late(machines)


def test_faults_at_once_are_all_there(machines: Machines, broken: Faults) -> None:
    """Twelve cuts by twelve threads: none is lost to another that read the rules before it."""
    pairs = list(permutations(("kafka", "rm", "nm1", "nm2"), 2))
    with ThreadPoolExecutor(len(pairs)) as threads:
        list(threads.map(lambda pair: broken.cut_one_way(*pair), pairs))
    assert all(broken.is_cut(*pair) for pair in pairs)
    assert machines.answered() == pairs_with(CLIENT)


def test_paused_machine_is_silent_and_goes_on(machines: Machines, broken: Faults) -> None:
    """Its kernel takes the connection, as that of a machine that swaps does; no process answers."""
    paused = broken.pause("nm1")
    assert [machines.record.daemons["nm1"].pid] == paused
    assert not machines.hears("nm2", "nm1")
    assert broken.resume("nm1") == paused
    assert machines.hears("nm2", "nm1", HEALED_S)
    broken.pause("nm1")
    broken.heal()
    assert machines.hears("nm2", "nm1", HEALED_S)


def test_a_machine_knows_itself_and_the_others_by_name(machines: Machines) -> None:
    """Its host name is the place's, and /etc/hosts is the cluster's; the caller's are untouched."""
    own = socket.gethostname()
    command = ["/bin/sh", "-c", "hostname; cat /etc/hosts; cat /proc/net/dev"]
    stated = networks.run(machines.network.on_machine("nm2", machines.layout.hosts, command))
    assert stated.splitlines()[:2] == ["nm2", "127.0.0.1 localhost"]
    assert set(stated.split()) & {"lo:", "eth0:"} == {"lo:", "eth0:"}
    assert machines.network.name not in stated
    assert socket.gethostname() == own
    assert "nm2" not in Path("/etc/hosts").read_text(encoding="utf-8").split()


def test_users_have_the_same_faults(machines: Machines, broken: Faults) -> None:
    """``homeport local`` cuts, slows down and heals; what it cannot do it says in one line."""

    def homeport_local(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*HOMEPORT_LOCAL, *words, "--name", "machines"]
        env = {**os.environ, "HOMEPORT_CACHE_DIR": str(machines.layout.cache)}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    for words in (["cut-node", "nm1"], ["cut-pair", "nm2", "kafka"], ["slow-node", "nm2", "10"]):
        done = homeport_local(*words)
        assert done.returncode == 0, done.stderr
    cut = pairs_with("nm1") | {frozenset(("nm2", "kafka"))}
    assert machines.answered() == ALL_PAIRS - cut
    assert processes.of_cluster(machines.record.cluster_id, "delay-nm2")
    assert broken.is_cut("rm", "nm1")
    assert homeport_local("heal").returncode == 0
    assert machines.answered() == ALL_PAIRS
    assert processes.of_cluster(machines.record.cluster_id, "delay-nm2") == {}
    refused = homeport_local("cut-node", "nm7")
    assert (refused.returncode, refused.stderr) == (
        1,
        "error: cluster machines has no place 'nm7'; it has kafka, rm, nm1, nm2, client\n",
    )


def test_wrong_places_are_one_line(broken: Faults) -> None:
    """A place that is not there is named, with those that are, before anything is cut."""
    verbs: tuple[Callable[[str], None], ...] = (
        lambda place: broken.cut("nm1", place),
        lambda place: broken.cut_pair("nm1", place),
        lambda place: broken.cut_one_way("nm1", place),
        lambda place: broken.cut_one_way(place, "all"),
        lambda place: broken.slow(place, 1),
        broken.heal,
    )
    for verb in verbs:
        with pytest.raises(
            ClusterError, match="has no place 'nm7'; it has kafka, rm, nm1, nm2, cl"
        ):
            verb("nm7")
    assert not any(broken.is_cut("nm1", place) for place in PLACES if place != "nm1")


def test_two_networks_at_once_and_nothing_of_either_is_left(namespaces: None) -> None:
    """Two clusters with a broker each reach their own; removal leaves no namespace and no link."""
    del namespaces
    names = [f"test-{os.getpid()}-net{number}" for number in (1, 2)]
    clusters = [LocalCluster(name, nodes=0, namespaces=True) for name in names]
    with contextlib.ExitStack() as stack:
        for cluster in clusters:
            stack.callback(cluster.down, keep_logs=False)
        with ThreadPoolExecutor(len(clusters)) as threads:
            list(threads.map(LocalCluster.up, clusters))
        first, second = clusters
        blocks = {cluster._record().addresses.block for cluster in clusters}
        assert len(blocks) == 2
        hosts = [cluster.bootstrap_servers.split(":")[0] for cluster in clusters]
        first.faults.cut("kafka")
        assert [bool(working(host)) for host in hosts] == [False, True]
        first.faults.heal()
        assert [bool(working(host)) for host in hosts] == [True, True]
        prefixes = [cluster._record().network or "" for cluster in clusters]
        assert all(networks.remains(prefix) for prefix in prefixes)
        # As if the run that started it had been SIGKILLed: its owner is no more.
        record = replace(second._record(), owner=processes.ProcessId(2**22, 1))
        write_record(second._layout.state, record)
        remove_abandoned(names[1])
        assert networks.remains(prefixes[1]) == []
        assert [bool(working(host)) for host in hosts] == [True, False]
    assert [networks.remains(prefix) for prefix in prefixes] == [[], []]


def test_network_that_cannot_be_made_leaves_nothing(
    namespaces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses in the middle: one line says what, and what was made before is gone."""
    del namespaces
    name = f"test-{os.getpid()}-half"
    cluster = LocalCluster(name, nodes=2, namespaces=True)
    made: list[str] = []
    real = networks.run

    def refuse_the_last(command: list[str], stated: str = "") -> str:
        if "client" in command:
            record = read_record(cluster._layout.state)
            assert record is not None
            made.extend(networks.remains(record.network or ""))
            raise ClusterError("ip link add failed with code 2: no more links today")
        return real(command, stated)

    monkeypatch.setattr(networks, "run", refuse_the_last)
    try:
        with pytest.raises(ClusterError, match="no more links today"):
            cluster.up()
    finally:
        monkeypatch.undo()
        cluster.down(keep_logs=False)
    assert len(made) == 5
    assert networks.remains(made[0].partition("-")[0]) == []


def test_cluster_on_loopback_says_that_it_cannot_be_cut(tmp_path: Path) -> None:
    """One line, with the remedy."""
    layout = Layout(tmp_path, "plain")
    layout.root.mkdir(parents=True)
    addresses = Addresses("127.70.3", {"nm1": "127.70.3.11"}, {"web": 5})
    write_record(layout.state, Record("a", "up", addresses, "/", processes.own(), {}))
    with pytest.raises(
        ClusterError, match="are on loopback, which cannot be cut; homeport local up"
    ):
        _ = LocalCluster("plain", cache=tmp_path).faults


@pytest.mark.long
def test_killed_and_cut_nodes_of_a_real_cluster_come_back(
    network_cluster: LocalCluster, faults: Faults
) -> None:
    """YARN gives up one that is cut; heal starts the killed one and both are RUNNING again."""
    faults.kill("nm3")
    faults.cut("nm4")
    faults.pause("nm2")
    states = {node["host"]: node["state"] for node in network_cluster.status()["nodes"]}
    assert (states["nm3"], states["nm2"]) == ("DOWN", "PAUSED")
    faults.heal()
    faults.wait_until_whole()
    states = {node["host"]: node["state"] for node in network_cluster.status()["nodes"]}
    assert set(states.values()) == {"RUNNING"}
