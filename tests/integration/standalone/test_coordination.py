"""Processors on a real ZooKeeper; their work is in memory, and does as it is ordered."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient
from processors_in_memory import SESSION_MS, Processor, settings, shared, story
from waiting import until
from zookeeper_ensemble import Link
from zookeeper_server import ZooKeeperServer

from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import Registration
from homeport.job_coordinator.standalone.protocol import EndCause
from homeport.job_coordinator.standalone.waits import waits

Start = Callable[..., Processor]


@pytest.fixture
def root() -> str:
    """A job's own node."""
    return f"/homeport/{uuid.uuid4().hex}"


@pytest.fixture
def start(zookeeper: ZooKeeperServer, root: str) -> Iterator[Start]:
    """Starts processors, and ends those that still run."""
    started: list[Processor] = []

    def begin(name: str, **more: object) -> Processor:
        times = {k: more.pop(k) for k in ("session_ms", "consensus_ms") if k in more}
        made = Processor(name, settings(zookeeper.connect, **times), root, **more)  # type: ignore[arg-type]  # a test's own words
        started.append(made)
        return made

    yield begin
    for processor in started:
        processor.close()


@pytest.fixture
def client(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    """A client of the test's own."""
    made = KazooClient(zookeeper.connect)
    made.start()
    yield made
    made.stop()
    made.close()


def test_processors_share_the_tasks_and_take_over_what_one_leaves(
    start: Start, client: KazooClient, root: str
) -> None:
    """One, two, three, then two again; a task that moves is fenced by its next owner."""
    one = start("one")
    until(lambda: shared([one]), lambda: story([one]))
    assert one.work.started[0].fence == ()
    two = start("two", location="nm2")
    until(lambda: shared([one, two]), lambda: story([one, two]))
    assert two.work.started[0].fence == (Incarnation(ProcessorId("one"), 1),)
    three = start("three", location="nm2")
    until(lambda: shared([one, two, three]), lambda: story([one, two, three]))
    before, left = one.held, two.held
    two.coordination.stop()
    assert two.join().cause is EndCause.STOPPED
    until(lambda: shared([one, three]), lambda: story([one, three]))
    # A task goes to a processor at the same location, where its state is.
    assert before <= one.held or len(before) > len(one.held)
    assert left & three.held
    hosts = {TaskName(t): Host("nm1") for t in one.held} | {
        TaskName(t): Host("nm2") for t in three.held
    }
    until(lambda: one.tree.readings().task_hosts == hosts, one.tree.readings)
    assert len(client.get_children(f"{root}/processors")) == 2


@pytest.mark.long
def test_a_processor_at_rest_keeps_its_generation_when_another_one_joins(start: Start) -> None:
    """With one task there is nothing for a second processor: the first one works on."""
    one = start("one", tasks=1)
    until(lambda: shared([one], 1), lambda: story([one]))
    two = start("two", tasks=1)
    until(
        lambda: (
            two.state is not None
            and two.state.version == 2
            and one.state is not None
            and one.state.version == 2
            and one.state.barrier_phase is not None
        ),
        lambda: story([one, two]),
    )
    assert len(one.work.started) == 1
    assert (one.generation, two.held) == (1, frozenset())


@pytest.mark.long
def test_a_restart_of_zookeeper_within_the_session_ends_no_work(
    start: Start, zookeeper: ZooKeeperServer
) -> None:
    """The connection is lost, the session stands: the work goes on until another one joins."""
    one, two = start("one", session_ms=50_000), start("two", session_ms=50_000)
    until(lambda: shared([one, two]), lambda: story([one, two]))
    before = [len(p.work.started) for p in (one, two)]
    numbers = [p.state.sequence for p in (one, two) if p.state]
    version = max(p.state.version for p in (one, two) if p.state)
    zookeeper.kill()
    until(
        lambda: not any(p.state and p.state.is_connected for p in (one, two)),
        lambda: story([one, two]),
    )
    zookeeper.start()
    until(
        lambda: all(p.state and p.state.is_connected for p in (one, two)), lambda: story([one, two])
    )
    three = start("three", session_ms=50_000)
    until(lambda: shared([one, two, three]), lambda: story([one, two, three]))
    assert numbers == [p.state.sequence for p in (one, two) if p.state]
    # The third one gets a task of one of them; nothing else has changed since.
    assert three.state is not None
    assert three.state.version == version + 1
    assert sum(len(p.work.started) for p in (one, two)) == sum(before) + 1


def test_a_lost_session_ends_the_lease_before_zookeeper_can_end_the_session(
    start: Start, zookeeper: ZooKeeperServer
) -> None:
    """A silent ZooKeeper renews nothing; afterwards a new registration is a new generation."""
    one = start("one")
    until(lambda: shared([one]), lambda: story([one]))
    lease, generation = one.work.lease, one.generation
    assert lease is not None
    stopped_ms = boot_ms()
    zookeeper.signal(signal.SIGSTOP)
    # A question sent before may be answered; nothing is later.
    until(lambda: boot_ms() > lease.deadline_ms, lambda: lease.deadline_ms)
    assert lease.deadline_ms < stopped_ms + SESSION_MS
    until(lambda: one.work.running is None, lambda: story([one]))
    zookeeper.signal(signal.SIGCONT)
    until(lambda: shared([one]) and one.generation > generation, lambda: story([one]))
    assert one.work.started[-1].fence == () or one.work.started[-1].fence == (
        Incarnation(ProcessorId("one"), generation),
    )
    assert one.work.lease is not lease


def test_a_restart_of_zookeeper_makes_no_twin_of_a_predecessor(
    start: Start, zookeeper: ZooKeeperServer, root: str
) -> None:
    """The server gives each session its whole time again: a processor waits for it as long."""
    link = Link(int(zookeeper.connect.rpartition(":")[2]))
    predecessor = KazooClient(f"127.0.0.1:{link.port}", timeout=SESSION_MS / 1000)
    predecessor.start()
    registration = Registration(0, ProcessorId("one"), Host("nm1"))
    node = f"{root}/{nodes.PROCESSORS}/{nodes.PREFIX}"
    data = nodes.encode_registration(registration)
    predecessor.create(node, data, ephemeral=True, sequence=True, makepath=True)
    link.cut()
    one = start("one")
    until(lambda: bool(one.state and one.state.twin), lambda: story([one]))
    zookeeper.kill()
    until(lambda: not (one.state and one.state.is_connected), lambda: story([one]))
    zookeeper.start()
    until(lambda: one.ended is not None or shared([one]), lambda: story([one]))
    assert one.ended is None
    link.close()
    predecessor.stop()
    predecessor.close()


def test_the_owner_of_a_task_that_goes_and_comes_back_is_fenced(start: Start) -> None:
    """Its partition is deleted with the owner's end, and made again before a third one joins."""
    both = [start("one", tasks=2), start("two", tasks=2, location="nm2")]
    until(lambda: shared(both, 2), lambda: story(both))
    left, stays = sorted(both, key=lambda p: sorted(p.held), reverse=True)
    owner, gone = Incarnation(ProcessorId(left.name), left.generation), left.held
    assert gone == {"Partition 1"}
    version = stays.state.version if stays.state else 0
    stays.tasks = 1
    left.coordination.stop()
    assert left.join().cause is EndCause.STOPPED
    until(lambda: bool(stays.state and stays.state.version > version), lambda: story(both))
    stays.tasks = 2
    three = start("three", tasks=2, location="nm3")
    until(lambda: shared([stays, three], 2), lambda: story([stays, three]))
    assert (three.held, three.work.started[0].fence) == (gone, (owner,))


@pytest.mark.long
def test_a_second_processor_of_one_id_ends_where_the_first_one_stays(start: Start) -> None:
    """It waits for as long as a predecessor's session may last, takes nothing, and says why."""
    one = start("one")
    until(lambda: shared([one]), lambda: story([one]))
    twin = start("one", location="nm2")
    end = twin.join()
    assert end.cause is EndCause.DUPLICATE
    assert end.text.startswith("processor.id = 'one': a processor at nm1 has this id")
    assert twin.work.started == []
    assert len(one.work.started) == 1


def _waits_for_one(processor: Processor) -> bool:
    state = processor.state
    found = [] if state is None else list(waits(state))
    return any(text.startswith("until one have joined") for text in found)


@pytest.mark.long
def test_a_barrier_that_a_member_does_not_join_is_given_up_and_tried_again(start: Start) -> None:
    """No task starts meanwhile, and each names the member; then the tasks are shared."""
    one = start("one", consensus_ms=300)
    until(lambda: shared([one]), lambda: story([one]))
    one.work.stops_silently = True
    two = start("two", consensus_ms=300)
    until(lambda: _waits_for_one(one), lambda: story([one, two]))
    until(lambda: _waits_for_one(two), lambda: story([one, two]))
    until(lambda: one.state is not None and one.state.version >= 3, lambda: story([one, two]))
    assert two.work.started == []
    one.work.stops_silently = False
    one.work.end(StopCause.ORDERED)
    until(lambda: shared([one, two]), lambda: story([one, two]))


@pytest.mark.long
def test_work_that_ends_for_want_of_kafka_begins_again_as_a_new_generation(start: Start) -> None:
    """It is no fault of the processor's, which registers again."""
    one = start("one")
    until(lambda: shared([one]), lambda: story([one]))
    generation = one.generation
    one.work.end(StopCause.UNAVAILABLE)
    until(lambda: shared([one]) and one.generation > generation, lambda: story([one]))


@pytest.mark.long
def test_work_that_fails_ends_its_processor_and_the_others_take_over(start: Start) -> None:
    """The line of the work is the processor's."""
    one, two = start("one"), start("two")
    until(lambda: shared([one, two]), lambda: story([one, two]))
    one.work.end(StopCause.FAILED)
    end = one.join()
    assert (end.cause, end.text) == (EndCause.FAILED, "the work's last line")
    until(lambda: shared([two]), lambda: story([two]))


def test_foreign_data_in_a_node_is_never_taken_for_none(
    start: Start, client: KazooClient, root: str
) -> None:
    """The processor ends, and names the node."""
    client.create(f"{root}/jobModels", b"seven", makepath=True)
    end = start("one").join()
    assert end.cause is EndCause.FAILED
    assert "the value of jobModels is no number: b'seven'" in end.text
    assert root in end.text


@pytest.mark.long
def test_a_plan_that_is_larger_than_a_node_lies_in_segments(
    start: Start, client: KazooClient, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others read the same of it; old versions go, with what lies below them."""
    monkeypatch.setattr(
        "homeport.job_coordinator.standalone.nodes.encode_plan.__defaults__", (256,)
    )
    one = start("one", tasks=40)
    until(lambda: shared([one], 40), lambda: story([one]))
    assert len(client.get_children(f"{root}/jobModels/1")) > 1
    for _ in range(6):
        two = start("two", tasks=40)
        until(lambda two=two: shared([one, two], 40), lambda: story([one]))  # type: ignore[misc]  # a default
        two.close()
        until(lambda: shared([one], 40), lambda: story([one]))
    versions = sorted(int(name) for name in client.get_children(f"{root}/jobModels"))
    assert versions[-1] - versions[0] + 1 == len(versions) == 10
    assert sorted(map(int, client.get_children(f"{root}/barriers"))) == versions


def test_zookeeper_that_does_not_answer_ends_the_start() -> None:
    """After job.coordinator.zk.connection.timeout.ms, in one line."""
    one = Processor("one", settings("127.0.0.1:1", connection_ms=100), "/homeport/x")
    end = one.join()
    assert end.cause is EndCause.FAILED
    assert end.text == (
        "ZooKeeper at 127.0.0.1:1 does not answer within "
        "job.coordinator.zk.connection.timeout.ms (100) (Connection refused): start it, or correct "
        "job.coordinator.zk.connect"
    )


@pytest.mark.long
def test_a_processor_that_waits_for_zookeeper_can_be_stopped() -> None:
    """It holds nothing, and ends at once."""
    one = Processor("one", settings("127.0.0.1:1"), "/homeport/x")
    one.coordination.stop()
    assert one.join().cause is EndCause.STOPPED
