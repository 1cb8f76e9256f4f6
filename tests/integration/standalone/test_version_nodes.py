"""The transactions that decide, on a real ZooKeeper, with another processor in between."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from zookeeper_server import ZooKeeperServer

from homeport.config.config import Config
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskModel
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import Member, Plan, Registration
from homeport.job_coordinator.standalone.protocol import BarrierPhase, CloseBarrier, Join, Publish
from homeport.job_coordinator.zookeeper import version_nodes
from homeport.job_coordinator.zookeeper.own_nodes import make_nodes
from homeport.job_coordinator.zookeeper.version_nodes import VersionNodes

P, Q, T = ProcessorId("p"), ProcessorId("q"), TaskName("t")


class Tree:
    """The nodes of a job with processor p, registered with a number, in a session of the test's."""

    def __init__(self, client: KazooClient) -> None:
        self.client: Any = client
        self.root = f"/homeport/{uuid.uuid4().hex}"
        make_nodes(client, self.root, is_owned=False)
        self.nodes = VersionNodes(client, self.root)
        self.own = self.registered(P)

    def registered(self, processor_id: ProcessorId) -> int:
        """The number of a new registration."""
        value = nodes.encode_registration(Registration(0, processor_id, Host("h")))
        path = f"{self.root}/{nodes.PROCESSORS}/{nodes.PREFIX}"
        made: str = self.client.create(path, value, ephemeral=True, sequence=True)
        return nodes.registration_number(made.rpartition("/")[2])

    def leaves(self, number: int) -> None:
        """The registration is gone."""
        self.client.delete(f"{self.root}/{nodes.PROCESSORS}/{nodes.node_name(number)}")

    def publish(self, version: int, owner: ProcessorId = P, *unreported: Incarnation) -> bool:
        """Publish a version whose only member has the task, as the generation of that number."""
        model = JobModel(Config({}), {owner: ContainerModel(owner, {T: TaskModel(T, (), 0)})})
        plan = Plan(version, (Member(owner, self.own, version, (T,)),), model=model)
        return self.nodes.publish(Publish(plan, self.own, unreported))

    def confirm(self, processor_id: ProcessorId, generation: int) -> bool:
        """Whether the generation may go on."""
        incarnation = Incarnation(processor_id, generation)
        return self.nodes.confirm(incarnation, self.nodes.read)

    def reports(self) -> dict[str, int]:
        """{processor: the generation of its last report}."""
        path = f"{self.root}/{nodes.FENCED}"
        return {n: int(self.client.get(f"{path}/{n}")[0]) for n in self.client.get_children(path)}

    def joined(self, version: int) -> list[str]:
        """The names of the processors that have joined the barrier."""
        found: list[str] = self.client.get_children(f"{self.root}/{nodes.BARRIERS}/{version}")
        return found


@pytest.fixture
def tree(zookeeper: ZooKeeperServer) -> Iterator[Tree]:
    """Return a job's nodes; version 1 is the newest."""
    client = KazooClient(zookeeper.connect)
    client.start()
    made = Tree(client)
    assert made.publish(1)
    yield made
    client.stop()
    client.close()


def meanwhile(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> None:
    """Call ``act`` once, between the look at the nodes and the write."""
    original: Callable[..., Any] = getattr(version_nodes, name)
    left = [act]

    def late(*arguments: Any) -> Any:  # noqa: ANN401 - passed on
        answer = original(*arguments)
        if left:
            left.pop()()
        return answer

    monkeypatch.setattr(version_nodes, name, late)


def test_a_leader_whose_registration_is_gone_publishes_nothing(tree: Tree) -> None:
    """Another one leads since, and may be about to publish the same number."""
    tree.leaves(tree.own)
    assert not tree.publish(2)
    assert tree.nodes.newest()[0] == 1


def test_of_two_leaders_one_publishes(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the other is faster between the look and the write."""
    meanwhile(monkeypatch, "put_value", lambda: tree.publish(2, Q))
    assert not tree.publish(2)
    assert tree.nodes.read(2).members[0].processor_id == Q


def test_a_late_processor_does_not_join_in_its_successors_place(tree: Tree) -> None:
    """Only the session that stands has let go of what the version gives to another."""
    other = tree.registered(P)
    tree.nodes.join(Join(1, P, other))
    tree.leaves(other)
    path = f"{tree.root}/{nodes.BARRIERS}/1/p"
    tree.nodes.join(Join(1, P, tree.own))
    assert tree.client.get(path)[0] == nodes.encode_number(tree.own)
    tree.nodes.join(Join(1, P, other))
    assert tree.client.get(path)[0] == nodes.encode_number(tree.own)
    tree.nodes.join(Join(1, Q, other))
    assert tree.joined(1) == ["p"]


def test_a_generation_that_is_overtaken_as_it_reports_does_not_go_on(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Safety I3: the version that has no place for it is published between look and write."""
    meanwhile(monkeypatch, "put_value", lambda: tree.publish(2, Q, Incarnation(P, 1)))
    assert not tree.confirm(P, 1)
    assert tree.reports() == {}
    assert tree.nodes.newest()[0] == 2


@pytest.mark.parametrize("earlier", [False, True])
def test_a_version_is_refused_where_one_that_it_leaves_out_has_reported(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, *, earlier: bool
) -> None:
    """Safety I1: before the look, or between look and write; a first report, or a further one."""
    if earlier:
        assert tree.confirm(P, 1)
        assert tree.publish(2)
    version = 2 if earlier else 1
    meanwhile(monkeypatch, "check_no_value", lambda: tree.confirm(P, version))
    assert not tree.publish(version + 1, Q, Incarnation(P, version))
    assert tree.reports() == {"p": version}
    assert not tree.publish(version + 1, Q, Incarnation(P, version))
    assert tree.publish(version + 1, Q)


def test_reports_of_processors_that_are_no_members_are_deleted(tree: Tree) -> None:
    """Each start without an id has another one: what is kept does not grow. A member's stays."""
    for version in range(2, 6):
        last, owner = ProcessorId(f"{P}{version - 1}"), ProcessorId(f"{P}{version}")
        assert tree.publish(version, owner)
        assert tree.confirm(owner, version)
        assert not tree.confirm(last, version - 1)
        assert tree.reports() == {owner: version}
    assert tree.publish(6, owner)
    assert tree.reports() == {owner: 5}


def test_a_late_deletion_touches_no_report_of_a_later_version(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processor is a member again, and has reported: it is what has it listed."""
    assert tree.confirm(P, 1)
    deletes = VersionNodes._forget_reports

    def late(self: VersionNodes, plan: Plan, written: int) -> None:
        if plan.version == 2:
            assert tree.publish(3)
            assert tree.confirm(P, 3)
        deletes(self, plan, written)

    monkeypatch.setattr(VersionNodes, "_forget_reports", late)
    assert tree.publish(2, Q)
    assert tree.reports() == {"p": 3}


def test_a_barrier_is_closed_once_and_only_of_the_newest_version(tree: Tree) -> None:
    """What was given up is not done afterwards."""
    tree.nodes.close_barrier(CloseBarrier(1, BarrierPhase.TIMED_OUT))
    tree.nodes.close_barrier(CloseBarrier(1, BarrierPhase.DONE))
    path = f"{tree.root}/{nodes.BARRIERS}"
    assert tree.client.get(f"{path}/1")[0] == b"TIMED_OUT"
    assert tree.publish(2)
    assert tree.publish(3)
    tree.nodes.close_barrier(CloseBarrier(2, BarrierPhase.DONE))
    assert tree.client.get(f"{path}/2")[0] == b"NEW"
