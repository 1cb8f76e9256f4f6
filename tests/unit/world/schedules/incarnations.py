"""Schedules of I1-I9: incarnations that come late, and transactions that go wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from homeport.appmaster.allocation import container_allocator
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import ContainerState
from homeport.appmaster.job_model import publication
from homeport.appmaster.lease.fencing import Fencing
from homeport.config.errors import UnavailableError
from homeport.container.incarnation import coordinators, start_up
from homeport.container.incarnation.context import IncarnationContext
from homeport.container.kafka.client_properties import TransactionError
from homeport.container.kafka.plain_producer import PlainOutputs, _PlainProducer
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.processing.open_transaction import OpenTransaction
from homeport.container.processing.prefetch import Prefetched
from homeport.container.processing.run_loop import RunLoop
from homeport.container.progress.transaction_plan import Send
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.world.clock import Process
from tests.unit.world.judges import committed, counted
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.world import config_of

OWN_INIT = "init homeport.j.1.processor.0.1"


def _first_child(scene: Scene) -> Process:
    """0@1, which has not done anything yet."""
    scene.attempt()
    return scene.child("0@1")


# -- I1


def lists_the_last_one_only(patch: pytest.MonkeyPatch) -> None:
    """A permit names the immediate predecessor."""
    permit = container_allocator.permit

    def permit_after_the_last(draft: Draft, container: ContainerState, *rest: Any) -> None:  # noqa: ANN401 - as the product's
        permit(draft, draft.change(replace(container, unfenced=container.unfenced[-1:])), *rest)

    patch.setattr(container_allocator, "permit", permit_after_the_last)


@schedule("I1", "0@1 wrote to task 0 after 0@3", lists_the_last_one_only)
def the_successor_of_a_sleeper_never_fenced_it(scene: Scene) -> None:
    """Two machines stand still: one in a transaction of 0@1, one before the first fence of 0@2."""
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    scene.world.network.mute[attempt.driver.name] = "init homeport.j.1.processor"
    scene.halt(child, "send to out", 2)
    scene.freeze("a")
    second = scene.child("0@2")
    scene.halt(second, OWN_INIT)
    scene.freeze(second.host)
    scene.until_started("0@3")
    scene.until_counted()
    scene.wake_up(child)
    scene.run(2000)


# -- I2


# A new model is published, and the epochs stay as they are.
@schedule("I2", "0@1 wrote to task 1 after 1@1", partitions=2)
@without(publication.TaskChange, "raised", lambda *_: iter(()))
def a_sleeper_begins_under_the_model_before(scene: Scene) -> None:
    """0@1 has both tasks and has not begun when its machine, its AM's too, stands still.

    The next submission has two containers. 1@1 has one of those tasks, and no incarnation of
    processor 0 is permitted yet when 0@1 begins.
    """
    old = scene.attempt(host="a")
    child = scene.child("0@1")
    scene.halt(child, OWN_INIT)
    scene.freeze("a")
    scene.world.config = config_of(2, {})
    scene.world.deploy()
    scene.attempt(submission=2)
    scene.until(lambda: len(scene.hosts.launchers) > 1, "the next attempt has a launcher")
    scene.hosts.launchers[1].stop()
    scene.until_started("1@1")
    scene.produce(2, b"k", partition=1)
    scene.until(lambda: counted(scene.world) == 2, "1@1 has counted")
    # The AM of before hears 0@1, and not yet that its time is over.
    scene.world.network.cut |= {old.driver.name, old.keeper.name}
    scene.wake_up(child)
    scene.produce(2, b"k", partition=1)
    scene.run(1000)
    scene.produce(2, b"k", partition=1)
    scene.run(1500)


# -- I3


def goes_on_whatever_the_head_says(patch: pytest.MonkeyPatch) -> None:
    """The start takes its fences to be enough."""
    patch.setattr(coordinators, "require_newest", lambda *_: None)


def looks_before_it_fences(patch: pytest.MonkeyPatch) -> None:
    """The coordinator stream is read first, and the ids are initialised afterwards."""
    require, begin = coordinators.require_newest, start_up.fence_and_begin

    def look_and_begin(context: IncarnationContext) -> TransactionalProducer:
        with start_up.open_coordinator_stream(context.job) as stream:
            stream.bootstrap()
            require(stream, context.permit)
        return begin(context)

    patch.setattr(start_up, "fence_and_begin", look_and_begin)
    patch.setattr(coordinators, "require_newest", lambda *_: None)


@schedule("I3", "0@1 wrote to task 0 after 0@2", goes_on_whatever_the_head_says)
@schedule("I3", "0@1 wrote to task 0 after 0@2", looks_before_it_fences)
def a_machine_stands_still_before_an_init(scene: Scene) -> None:
    """0@2 has fenced 0@1 and works. The init of 0@1 comes then, and Kafka accepts it."""
    child = _first_child(scene)
    scene.halt(child, OWN_INIT)
    scene.freeze("a")
    scene.until_started("0@2")
    scene.work(2)
    scene.wake_up(child)
    scene.produce(2)
    scene.run(1000)
    scene.produce(2)
    scene.run(1000)


def fences_nobody(patch: pytest.MonkeyPatch) -> None:
    """A start initialises its own id only."""
    begin = start_up.fence_and_begin

    def begin_alone(context: IncarnationContext) -> TransactionalProducer:
        return begin(replace(context, permit=replace(context.permit, fence=())))

    patch.setattr(start_up, "fence_and_begin", begin_alone)


@schedule("I3", "0@1 wrote to task 0 after 0@2", fences_nobody)
def a_machine_stands_still_before_it_sends(scene: Scene) -> None:
    """0@1 has computed a transaction, of which nothing is in Kafka yet; 0@2 takes over."""
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    scene.world.network.mute[attempt.driver.name] = "init homeport.j.1.processor"
    scene.halt(child, "send to out", 2)
    scene.freeze("a")
    scene.until_started("0@2")
    scene.until_counted()
    scene.wake_up(child)
    scene.run(2000)


# -- I4


# The driver initialises no id.
@schedule("I4", "it is not so that 1@2 has started", containers=2, partitions=2)
@without(Fencing, "lost", lambda *_: None)
def a_lost_transaction_is_open_in_the_checkpoint_topic(scene: Scene) -> None:
    """0@1 stands still in it, its successor has no launcher yet, and 1@1 dies.

    1@2 reads the checkpoints to their head, which it cannot pass while they are undecided: Kafka
    itself ends the transaction after 10 s, or up to 20.
    """
    scene.attempt()
    scene.until(lambda: scene.started() == 2, "both have started")
    child = scene.hosts.child("0@1")
    scene.halt(child, "commit homeport.j.1.processor.0.1", 2, b"l")
    scene.freeze(child.host)
    scene.until(lambda: len(scene.hosts.launchers) > 2, "a launcher for 0@2 is there")
    scene.hosts.launchers[2].stop()
    scene.hosts.child("1@1").kill()
    scene.until_started("1@2", 3000)


# -- I5


def sends_outputs_as_they_come(patch: pytest.MonkeyPatch) -> None:
    """Every batch's outputs leave at once, within a transaction that ends when it is due."""
    process = RunLoop._process

    def process_and_send(loop: RunLoop, batch: Prefetched) -> None:
        process(loop, batch)
        producer, outputs = loop._deps.producer._producer, loop._deps.outputs
        for send in outputs.sends:
            producer.produce(send.topic, value=send.value, key=send.key)
        producer.flush()
        outputs.clear()

    patch.setattr(RunLoop, "_process", process_and_send)


NEVER_EARLY = {"task.transaction.idle.ms": "-1"}
"""Transactions end by their age alone."""


@schedule("I5", "0@1 was ended, which was at work", sends_outputs_as_they_come, config=NEVER_EARLY)
def a_batch_takes_longer_than_a_transaction_may(scene: Scene) -> None:
    """The broker ends transactions that are open for ten seconds, and fences their producers."""
    scene.working()
    child = scene.hosts.child("0@1")
    scene.produce()
    scene.run(500)
    scene.take(25_000)
    scene.produce()
    scene.run(27_000)
    scene.require(child.is_alive, "0@1 was ended, which was at work")
    scene.require(counted(scene.world) == scene.produced, "not all was counted")


# -- I6


def commits_what_it_has(patch: pytest.MonkeyPatch) -> None:
    """A container that is ordered to stop commits what it has done so far."""
    drop = OpenTransaction.drop

    def commit_and_drop(transaction: OpenTransaction) -> None:
        parts = transaction._deps
        if transaction._stop.is_set() and parts.outputs.sends:
            changes = parts.storage.changes()
            parts.producer.begin()
            parts.producer.send(parts.outputs.sends)
            for change in changes:
                parts.producer.send_changes(change)
            positions = parts.producer.commit()
            for store in parts.storage.ids()[0]:
                parts.storage.apply(store, positions)
        drop(transaction)

    patch.setattr(OpenTransaction, "drop", commit_and_drop)


@schedule("I6", "was counted 6 times for 3 records", commits_what_it_has, partitions=2)
def a_container_is_stopped_between_two_tasks(scene: Scene) -> None:
    """One task has done its part of a batch, the other one is at it when SIGTERM comes."""
    child = _first_child(scene)
    scene.until_started("0@1")
    scene.take(300)
    # Keys whose outputs come to where their inputs were.
    scene.produce(3, b"l", partition=0)
    scene.produce(3, b"k", partition=1)
    scene.run(500)
    child.terminate()
    scene.until_started("0@2")
    scene.run(2000)
    scene.require(counted(scene.world) >= scene.produced, "not all was counted")


# -- I7


def unknown_is_taken_for_committed(patch: pytest.MonkeyPatch) -> None:
    """A container that does not learn the result of a commit goes on."""
    commit = TransactionalProducer.commit

    def commit_and_hope(producer: TransactionalProducer) -> dict[tuple[str, int], int]:
        try:
            return commit(producer)
        except (TransactionError, UnavailableError) as error:
            if "outcome is unknown" in str(error):
                return producer._reports
            raise

    patch.setattr(TransactionalProducer, "commit", commit_and_hope)


# A commit waits for 30 s, and a container that Kafka does not answer ends only later, as in use.
PATIENT = {"job.coordinator.isolation.max.ms": "30000"}


@schedule("I7", "it is not so that all is counted", unknown_is_taken_for_committed, config=PATIENT)
def kafka_is_out_of_reach_at_a_commit(scene: Scene) -> None:
    """The commit never gets there, and the broker aborts the transaction after its time."""
    scene.working()
    scene.run(100)
    child = scene.hosts.child("0@1")
    scene.halt(child, "commit homeport.j.1.processor.0.1", 2)
    scene.world.network.cut.add("a")
    child.go_on()
    scene.run(31_000)
    scene.world.network.cut.clear()
    scene.until_counted(20_000)


def unknown_is_tried_again(patch: pytest.MonkeyPatch) -> None:
    """A container that does not learn the result of a commit sends all of it once more."""
    send, commit = TransactionalProducer.send, TransactionalProducer.commit
    sent: dict[TransactionalProducer, list[Send]] = {}

    def keep_and_send(producer: TransactionalProducer, sends: Iterable[Send]) -> None:
        listed = list(sends)
        sent.setdefault(producer, []).extend(listed)
        send(producer, listed)

    def commit_again(producer: TransactionalProducer) -> dict[tuple[str, int], int]:
        listed = sent.pop(producer, [])
        try:
            return commit(producer)
        except (TransactionError, UnavailableError) as error:
            if "outcome is unknown" not in str(error):
                raise
            producer.begin()
            send(producer, listed)
            return commit(producer)

    patch.setattr(TransactionalProducer, "send", keep_and_send)
    patch.setattr(TransactionalProducer, "commit", commit_again)


@schedule("I7", "something was lost or applied twice", unknown_is_tried_again)
def the_answer_to_a_commit_is_lost(scene: Scene) -> None:
    """It is committed, and the container cannot know."""
    scene.working()
    child = scene.hosts.child("0@1")
    scene.world.network.deaf[child.name] = "commit"
    scene.work(2)
    scene.world.network.deaf.clear()
    scene.run(32_000)
    scene.judge()
    scene.work()


# -- I8

AT_ONCE = {"task.exactly.once": "false"}


def _state_is_whole(scene: Scene) -> bool:
    """Whether the state of the one key is all that was produced; outputs may be repeated."""
    states = [c.record.value for c in committed(scene.world.broker.partition(("counts", 0)))]
    return states[-1:] == [str(scene.produced).encode()]


def settles_when_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    """The outputs' reports are waited for after the checkpoint."""
    deliver, finish = PlainOutputs.deliver, OpenTransaction.finish

    def finish_and_settle(transaction: OpenTransaction) -> None:
        was_on_its_way = transaction.is_on_its_way
        finish(transaction)
        if was_on_its_way and transaction._deps.plain is not None:
            deliver(transaction._deps.plain, transaction._stop.pause)

    patch.setattr(PlainOutputs, "deliver", lambda *_: None)
    patch.setattr(OpenTransaction, "finish", finish_and_settle)


@schedule("I8", "something was lost", settles_when_it_is_committed, config=AT_ONCE)
def a_container_dies_before_its_outputs_are_delivered(scene: Scene) -> None:
    """They are still in its memory: the next container must read their input again."""
    scene.working()
    scene.run(100)
    child = scene.hosts.child("0@1")
    scene.halt(child, "send to out", 2)
    child.kill()
    scene.until_started("0@2")
    scene.produce()
    scene.until(lambda: _state_is_whole(scene), "all is counted")
    scene.run(100)


def heeds_no_report(patch: pytest.MonkeyPatch) -> None:
    """Whatever became of the outputs, the checkpoint follows."""

    def flush_and_hope(plain: _PlainProducer, _pause: object) -> None:
        plain._producer.flush(1)
        plain._refused = None

    patch.setattr(_PlainProducer, "deliver", flush_and_hope)


@schedule("I8", "something was lost", heeds_no_report, config=AT_ONCE)
def outputs_are_not_taken(scene: Scene) -> None:
    """The brokers of the output do not answer, those of changelog and checkpoint do."""
    scene.working()
    scene.run(100)
    child = scene.hosts.child("0@1")
    scene.world.network.mute[child.name] = "send to out"
    scene.produce(2)
    scene.until(lambda: _state_is_whole(scene) or not child.is_alive, "0@1 has gone on, or not")
    child.kill()
    scene.until_started("0@2")
    scene.produce()
    scene.until(lambda: _state_is_whole(scene), "all is counted")
    scene.run(100)


# -- I9

UPCOMING = {"systems.kafka.samza.offset.default": "upcoming"}


# No record says where a task begins until it commits its first transaction.
@schedule("I9", "the input is counted", config=UPCOMING)
@without(start_up, "commit_starts", lambda *_: None)
def a_container_dies_before_its_first_record(scene: Scene) -> None:
    """It began at the end of the input; three records come before its successor begins."""
    scene.attempt()
    scene.until_started("0@1")
    scene.run(2000)
    scene.hosts.child("0@1").kill()
    scene.produce(3)
    scene.until_started("0@2")
    scene.work(2)


# --- a schedule of I1: an incarnation that is only revoked may yet begin, so it stays in all lists


def the_driver_s_fence_is_enough(patch: pytest.MonkeyPatch) -> None:
    """The driver reports all that it has fenced, and they leave the lists, stopped or not."""
    drop = container_allocator._drop_unfenced

    def drop_all(draft: Draft, incarnations: Iterable[Incarnation], _: object) -> None:
        gone = frozenset(incarnations)
        drop(draft, gone, lambda p: p.incarnation in gone)

    patch.setattr(container_allocator, "_drop_unfenced", drop_all)
    patch.setattr(Fencing, "lost", Fencing.stopped)


@schedule("I1", "0@1 wrote to task 0 after 0@2", the_driver_s_fence_is_enough)
def one_that_the_driver_has_fenced_begins_late(scene: Scene) -> None:
    """0@1 has not initialised its id when its machine stands still; the driver does, on evidence.

    Then the machine goes on for a moment. No host is there for 0@2 yet, so 0@1 finds its own epoch
    the newest one, begins, and stands still again with a transaction computed. Kafka accepted its
    late init: the driver's fence is undone, and only the list of 0@2's permit still names 0@1.
    """
    scene.attempt()
    scene.child("0@1")
    for host in scene.cluster.hosts:
        scene.cluster.hosts[host] = False
    child = scene.hosts.child("0@1")
    scene.halt(child, "init homeport.j.1.processor.0.1")
    scene.hosts.freeze(child.host)
    scene.until_revoked("0@1")
    scene.run(1000)
    scene.world.links.cut.add((scene.hosts.launcher_of(child).name, "*"))
    child.stop_at("send to out")
    scene.produce(2)
    scene.hosts.thaw(child.host)
    scene.until(lambda: child.is_stopped, "0@1 is about to send")
    scene.hosts.freeze(child.host)
    scene.cluster.hosts[Host("b")] = True
    scene.until_started("0@2")
    scene.until_counted()
    scene.hosts.thaw(child.host)
    scene.run(2000)
