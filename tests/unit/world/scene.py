"""A scene: one world with a job, and the words in which schedules are written.

What is real in this world: the product. Drivers run ``application_master.main``, keepers
``lease_keeper.main``, launchers ``launcher.main`` and containers ``StreamContainer``, whole. What
is a model: the clock and the turns of threads (``clock``), the brokers (``kafka``) and the library
on top of them (``kafka_clients``), YARN (``yarn``), supervisors (``am``), the disk below RocksDB
(``containers``), the network, threads and event loops (``stand_ins``). Everything is exact and
repeats itself; a second of the world takes some milliseconds.

How a schedule is written (``schedules/*.py``; the groups are files)::

    # What the product does when the rule is taken out of it.
    @schedule("C1", "0@1 wrote to task 0 after 0@2", containers=1)
    @without(lease_table, "margin_ms", lambda _: 0)
    def the_story_in_its_name(scene: Scene) -> None:
        \"\"\"Who pauses when, and what would come of it.\"\"\"
        attempt = scene.working()                    # all started, three records counted
        child = scene.hosts.child("0@1")             # a Process, like hosts.launcher_of(child)
        scene.halt(child, "commit homeport.j.1.processor", 2)  # SIGSTOP there, two records later
        scene.world.network.cut.add("a")             # host a does not reach Kafka
        scene.world.links.isolate("a")               # nor anybody else; links.mend() ends it
        scene.run(15_000)                            # the clock goes on
        child.go_on()                                # SIGCONT; also: kill(), terminate() = SIGTERM
        scene.hosts.freeze("a")                      # the machine, with its clocks; thaw() ends it
        scene.require(child.is_alive, "a healthy container was killed")  # a judgement of its own

At its end the judges of ``judges`` look at the logs, unless ``is_judged=False``. The same function
is played twice by ``test_rules``: with the product as it is it must end well; with the mutant it
must raise ``UnsafeError`` matching the verdict given. Any other error fails both. A mutant replaces
a function or constant of the product by name; where an order stands only in what is mirrored here,
it replaces that. Points are named after what is done: every request to Kafka (``init ID``, ``send
to TOPICS``, ``commit ID``, ``abort ID``, ``ask the end of TOPIC``, ``fetch TOPIC``) and to the AM
(``v1/check-in``, ``v1/started``, ``v1/stopped``, ``v1/lease``), each before it leaves and, with "
answered" behind, when its answer is there; ``write to STORE`` and ``flush STORE``. A failing
schedule prints its story.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from homeport.container.api import MessageCollector
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE
from homeport.job_coordinator.model.ids import Host
from tests.unit.world.am import Attempt, Cluster
from tests.unit.world.clock import Clock, Condition, Process, StuckError
from tests.unit.world.containers import Count, Hosts
from tests.unit.world.judges import UnsafeError, counted, judge, require
from tests.unit.world.world import World

KEYS = (b"l", b"k")
"""Keys whose outputs come to where their inputs were, by partition."""


class Scene:
    """One job that counts; ``hosts`` a, b and c for containers, the AM's host is ``am``."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster = Cluster(world)
        self.hosts = Hosts(self.cluster)
        self.produced = 0

    @property
    def clock(self) -> Clock:
        """The world's clock."""
        return self.world.clock

    def attempt(self, submission: int = 1, attempt: int = 1, host: str = "am") -> Attempt:
        """A new AM attempt begins."""
        return self.cluster.attempt(submission, attempt, host)

    def working(self, records: int = 3) -> Attempt:
        """The first attempt, with every container started and ``records`` counted."""
        attempt = self.attempt()
        self.until(lambda: self.started() == len(self.world.task_names()), "all have started")
        self.work(records)
        return attempt

    def started(self) -> int:
        """How many tasks have been started, by any incarnation."""
        return len({str(f.who) for f in self.world.facts_of("container:started")})

    def produce(
        self, records: int = 1, key: bytes = b"k", partition: int = 0, topic: str = "in"
    ) -> None:
        """So many records are in the input."""
        self.world.produce(records, key, partition, topic)
        self.produced += records

    def work(self, records: int = 1) -> None:
        """So many more records come, and are counted within the usual time."""
        self.produce(records)
        self.until(lambda: counted(self.world) == self.produced, "the input is counted")

    def work_each(self, limit_ms: int = 60_000) -> None:
        """Two more records come to each of two partitions, and are counted."""
        for partition, key in enumerate(KEYS):
            self.produce(2, key, partition)
        self.until_counted(limit_ms)

    def configure(self, key: str, value: str) -> None:
        """An operator has written a key into the coordinator stream, with the writer tool."""
        self.world.write(wire.set_config(key, value), WRITER_SOURCE)

    def until(self, condition: Condition, what: str, limit_ms: int = 60_000) -> None:
        """Time passes until this is so.

        Raises:
            UnsafeError: it is not so within the limit: a process is hidden or blocked.
        """
        try:
            self.clock.run_until(condition, limit_ms)
        except StuckError:
            story = self.clock.stated(f"UNSAFE: after {limit_ms} ms it is not so that {what}")
            raise UnsafeError(story) from None

    def run(self, ms: int) -> None:
        """Time passes."""
        self.clock.run(ms)

    def until_started(self, who: str, limit_ms: int = 60_000) -> None:
        """That incarnation has started."""
        started = partial(self.has_fact, "container:started", who)
        self.until(started, f"{who} has started", limit_ms)

    def until_revoked(self, who: str, limit_ms: int = 60_000) -> None:
        """The keeper has revoked the lease of that incarnation, for the driver."""
        revoked = partial(self.has_fact, "driver:revoked", who)
        self.until(revoked, f"the lease of {who} is over", limit_ms)

    def until_counted(self, limit_ms: int = 60_000) -> None:
        """All that was produced is counted."""
        self.until(lambda: counted(self.world) == self.produced, "all is counted", limit_ms)

    def until_ended(self, process: Process, limit_ms: int = 60_000) -> None:
        """The process has ended."""
        self.until(lambda: not process.is_alive, f"{process.name} has ended", limit_ms)

    def child(self, name: str) -> Process:
        """The child of that incarnation, such as "0@1", as soon as it begins."""
        self.until(lambda: self.hosts.has_child(name), f"{name} begins")
        return self.hosts.child(name)

    def halt(
        self, process: Process, point: str, records: int = 0, key: bytes = b"k", partition: int = 0
    ) -> None:
        """The process is stopped when it comes to that point, with so many more records."""
        process.stop_at(point)
        self.produce(records, key, partition)
        self.until(lambda: process.is_stopped, f"{process.name} is at {point}")

    def driver_of(self, attempt: Attempt) -> Process:
        """The driver of the attempt, as soon as it runs."""
        self.until(lambda: attempt.children[1].process is not None, "there is a driver")
        return attempt.driver

    def only(self, *hosts: str) -> None:
        """These hosts are live for YARN, and no others."""
        self.cluster.hosts.update({host: str(host) in hosts for host in self.cluster.hosts})

    def kill_all(self, *hosts: str) -> None:
        """All launchers, children and witnesses on these hosts are killed."""
        for process in [p for host in hosts for p in self.hosts.of(host)]:
            process.kill()

    def freeze(self, host: str) -> None:
        """The whole machine stands still, its NodeManager too."""
        self.cluster.hosts[Host(host)] = False
        self.hosts.freeze(host)

    def wake_up(self, child: Process) -> None:
        """Its machine goes on, its launcher is cut off, its clock says that its lease is good."""
        self.world.links.cut.add((self.hosts.launcher_of(child).name, "*"))
        self.hosts.thaw(child.host)

    def take(self, ms: int) -> None:
        """From now on the user's code works on each batch for so long."""
        at_once = Count.process_batch

        def slowly(task: Count, table: pa.Table, collector: MessageCollector) -> None:
            self.clock.sleep(ms)
            at_once(task, table, collector)

        self.world.patch.setattr(Count, "process_batch", slowly)

    def has_fact(self, what: str, who: str | None = None) -> bool:
        """Whether this has been noted, of this one or of any."""
        return any(who in {None, str(f.who)} for f in self.world.facts_of(what))

    def require(self, holds: bool, verdict: str) -> None:  # noqa: FBT001 - a judgement
        """A judgement of the schedule's own: ``verdict`` is what is wrong if it does not hold."""
        require(self.world, holds, verdict)

    def judge(self) -> None:
        """All judges have looked at the world as it is."""
        judge(self.world)
