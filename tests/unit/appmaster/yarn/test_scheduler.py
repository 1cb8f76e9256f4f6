"""What the ResourceManager says of schedulers, queues and labels, as Hadoop 3.5.0 answers."""

from __future__ import annotations

import pytest

from homeport.appmaster.yarn.scheduler import (
    CAPACITY,
    FAIR,
    Partition,
    Queue,
    Scheduler,
    scheduler_of,
    shared_labels,
)

STATE = frozenset({"state"})


def test_queues_of_the_capacity_scheduler_have_state_and_labels() -> None:
    """Leaves and parents, by path; a parent may make its children."""
    leaf = {
        "type": "capacitySchedulerLeafQueueInfo",
        "queueType": "leaf",
        "queueName": "streams",
        "queuePath": "root.streams",
        "state": "STOPPED",
        "nodeLabels": ["state"],
        "defaultNodeLabelExpression": "state",
        "autoCreationEligibility": "off",
    }
    parent = {
        "queueType": "parent",
        "queueName": "users",
        "queuePath": "root.users",
        "autoCreationEligibility": "flexible",
    }
    info = {
        "type": "capacityScheduler",
        "queueName": "root",
        "queuePath": "root",
        "queueType": "parent",
        "queues": {"queue": [leaf, parent]},
    }
    found = scheduler_of({"scheduler": {"schedulerInfo": info}})
    assert found == Scheduler(
        CAPACITY,
        (
            Queue("root", is_leaf=False),
            Queue("root.streams", state="STOPPED", labels=STATE, default_label="state"),
            Queue("root.users", is_leaf=False, grows=True),
        ),
    )
    assert found.queue("streams") == found.queue("root.streams") == found.queues[1]
    assert found.grows("users.ada")
    assert not found.grows("streams.ada")
    assert not found.grows("ada")


def test_queues_of_the_fair_scheduler_are_named_by_their_paths() -> None:
    """It says neither state nor labels."""
    leaf = {"type": "fairSchedulerLeafQueueInfo", "queueName": "root.default"}
    root = {"queueName": "root", "childQueues": {"queue": [leaf]}}
    info = {"type": "fairScheduler", "rootQueue": root}
    found = scheduler_of({"scheduler": {"schedulerInfo": info}})
    assert found.kind == FAIR
    assert found.queue("default") == Queue("root.default")
    assert found.queue("streams") is None


def test_a_scheduler_without_queues_has_none() -> None:
    """The FIFO scheduler, or an answer of something else."""
    fifo = {"scheduler": {"schedulerInfo": {"type": "fifoScheduler", "qstate": "RUNNING"}}}
    assert scheduler_of(fifo) == Scheduler("fifoScheduler")
    assert scheduler_of({}) == Scheduler("")


@pytest.mark.parametrize(
    ("partition", "labels", "has"),
    [
        (Partition("state"), STATE, True),
        (Partition("state"), frozenset(), False),
        (Partition("state", STATE), frozenset({"gpu"}), False),
        (Partition(""), frozenset(), True),
        (Partition(""), STATE, False),
        (Partition("", STATE), STATE, True),
    ],
)
def test_a_node_belongs_to_the_partition_of_its_label(
    partition: Partition, labels: frozenset[str], *, has: bool
) -> None:
    """Nodes of a label that is not exclusive are lent to containers without one."""
    assert partition.has(labels) is has


def test_only_labels_that_are_not_exclusive_are_shared() -> None:
    """One label comes as an object, several as a list, none as nothing."""
    shared = {"name": "a", "exclusivity": False}
    assert shared_labels({"nodeLabelInfo": [shared, {"name": "b", "exclusivity": True}]}) == {"a"}
    assert shared_labels({"nodeLabelInfo": shared}) == {"a"}
    assert shared_labels({}) == frozenset()


def test_a_queue_may_use_its_labels_or_every_one() -> None:
    """``*`` stands for all."""
    assert Queue("q", labels=STATE).may_use("state")
    assert not Queue("q").may_use("state")
    assert Queue("q", labels=frozenset({"*"})).may_use("state")
