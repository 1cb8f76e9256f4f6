"""YARN's scheduler, by the ResourceManager's answers: kind, queues, node labels. PURE.

Node labels divide the nodes into partitions: each node is in one of them. Nodes without a label are
the default partition.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.appmaster.allocation.protocol.events import HostReport

CAPACITY = "capacityScheduler"
FAIR = "fairScheduler"
FIFO = "fifoScheduler"

_RUNNING = "RUNNING"
_EVERY_LABEL = "*"


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue by its whole path, such as ``root.streams``.

    ``labels``: it may use nodes with these labels, and nodes without a label. ``default_label``:
    the label of containers that request none. ``grows``: its child queues are made when
    applications name them.
    """

    path: str
    is_leaf: bool = True
    state: str = _RUNNING
    labels: frozenset[str] = frozenset()
    default_label: str = ""
    grows: bool = False

    @property
    def is_running(self) -> bool:
        """Whether it takes applications."""
        return self.state == _RUNNING

    def may_use(self, label: str) -> bool:
        """Return whether its applications may use nodes with this label."""
        return label in self.labels or _EVERY_LABEL in self.labels


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The scheduler. ``kind``: the ResourceManager's name for it. ``queues``: parents first."""

    kind: str
    queues: tuple[Queue, ...] = ()

    def queue(self, name: str) -> Queue | None:
        """Return the queue of this path, with or without ``root.``, or of this last name."""
        wanted = (name, f"root.{name}")
        found = [q for q in self.queues if q.path in wanted]
        found += [q for q in self.queues if q.is_leaf and q.path.rpartition(".")[2] == name]
        return found[0] if found else None

    def grows(self, name: str) -> bool:
        """Return whether a queue of this path is made when an application names it."""
        parent = self.queue(name.rpartition(".")[0] or "root")
        return parent is not None and parent.grows


@dataclass(frozen=True, slots=True)
class Node:
    """One NodeManager: its report and its labels."""

    report: HostReport
    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Partition:
    """The nodes for containers with ``label``; ``""``: for containers without a label.

    ``shared``: labels whose idle nodes YARN lends to containers without a label.
    """

    label: str
    shared: frozenset[str] = frozenset()

    def has(self, labels: frozenset[str]) -> bool:
        """Return whether a node with these labels is in the partition."""
        return self.label in labels if self.label else labels <= self.shared


def scheduler_of(body: Mapping[str, Any]) -> Scheduler:
    """Return the scheduler from the answer to ``/ws/v1/cluster/scheduler``."""
    info = (body.get("scheduler") or {}).get("schedulerInfo") or {}
    kind = str(info.get("type") or "")
    root = info.get("rootQueue") if kind == FAIR else info
    return Scheduler(kind, tuple(_queues(root or {})) if kind in {CAPACITY, FAIR} else ())


def _queues(body: Mapping[str, Any]) -> Iterator[Queue]:
    children = (body.get("queues") or body.get("childQueues") or {}).get("queue") or ()
    growing = str(body.get("autoCreationEligibility") or "off")
    yield Queue(
        path=str(body.get("queuePath") or body.get("queueName") or ""),
        is_leaf="leaf" in str(body.get("queueType") or body.get("type") or "").lower(),
        state=str(body.get("state") or _RUNNING),
        labels=frozenset(str(label) for label in body.get("nodeLabels") or ()),
        default_label=str(body.get("defaultNodeLabelExpression") or "").strip(),
        grows=growing != "off",
    )
    for child in children:
        yield from _queues(child)


def shared_labels(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the labels whose nodes are lent, from ``/ws/v1/cluster/get-node-labels``."""
    known = body.get("nodeLabelInfo") or ()
    labels = [known] if isinstance(known, Mapping) else known
    return frozenset(
        str(x["name"]) for x in labels if str(x.get("exclusivity", "true")).lower() == "false"
    )
