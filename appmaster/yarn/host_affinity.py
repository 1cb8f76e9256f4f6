"""Checks that a cluster lets containers return to their hosts. PURE.

Source: docs/scheduler.md, which has the consequence for each key.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from homeport.appmaster.yarn.scheduler import (
    CAPACITY,
    FAIR,
    FIFO,
    Node,
    Partition,
    Queue,
    Scheduler,
)
from homeport.config.config import LONG_MAX, Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.number_text import counted
from homeport.config.settings.sections import ClusterManagerConfig, JobConfig, YarnConfig
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number

ASYNCHRONOUS = "yarn.scheduler.capacity.schedule-asynchronously.enable"
CONTINUOUS = "yarn.scheduler.fair.continuous-scheduling-enabled"
HEARTBEAT_MS = "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"
LABELS_ENABLED = "yarn.node-labels.enabled"
RM_RECOVERY = "yarn.resourcemanager.recovery.enabled"
RM_WORK_PRESERVING = "yarn.resourcemanager.work-preserving-recovery.enabled"
NM_RECOVERY = "yarn.nodemanager.recovery.enabled"
SIGKILL_DELAY_MS = "yarn.nodemanager.sleep-delay-before-sigkill.ms"
PMEM_CHECK = "yarn.nodemanager.pmem-check-enabled"
VMEM_CHECK = "yarn.nodemanager.vmem-check-enabled"
ENFORCED = "yarn.nodemanager.resource.memory.enforced"
CGROUPS = "yarn.nodemanager.resource.memory.enabled"
SCHEDULER_CLASS = "yarn.resourcemanager.scheduler.class"
MAX_MB = "yarn.scheduler.maximum-allocation-mb"
MAX_CORES = "yarn.scheduler.maximum-allocation-vcores"

_ENOUGH_TO_STOP_MS = 1000
"""Six containers with small stores stopped in 0.1 to 0.8 s on a busy machine."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts of a cluster. A mapping is empty where its daemon does not show its settings.

    ``partition``: the nodes for containers; None: all. ``node``: the settings of ``node_name``.
    ``queues_file``: the client's ``capacity-scheduler.xml``, because the ResourceManager does not
    show its own.
    """

    scheduler: Scheduler
    running: tuple[Node, ...] = ()
    partition: Partition | None = None
    resource_manager: Mapping[str, str] = field(default_factory=dict)
    node: Mapping[str, str] = field(default_factory=dict)
    node_name: str = ""
    queues_file: Mapping[str, str] = field(default_factory=dict)


def refusals(config: Config, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield why the job cannot run, or its containers cannot return; each reason suffices."""
    yarn, kind = YarnConfig.of(config), facts.scheduler.kind
    if kind == FIFO and JobConfig.of(config).host_affinity_enabled:
        yield ConfigError(
            SCHEDULER_CLASS,
            kind,
            "it takes a request for one host as one for any, and "
            f"{keys.JOB_HOST_AFFINITY_ENABLED.name} is true",
            "run the job under the CapacityScheduler or the FairScheduler, or set that to false",
        )
    queue = facts.scheduler.queue(yarn.queue)
    if kind == CAPACITY:
        yield from _queue_refusals(yarn.queue, queue, facts.scheduler)
    for key, label in (
        (keys.YARN_CONTAINER_LABEL.name, yarn.container_label),
        (keys.YARN_AM_LABEL.name, yarn.am_label),
    ):
        if label is not None:
            yield from _label_refusals(key, label, queue, facts)
    partition = facts.partition
    labels = [node.labels for node in facts.running]
    if labels and partition is not None and not any(map(partition.has, labels)):
        wanting = keys.YARN_CONTAINER_LABEL if yarn.container_label else keys.YARN_QUEUE
        what = f"the label {partition.label!r}" if partition.label else "no label"
        yield wanting.error(
            yarn.container_label or yarn.queue,
            f"containers would need a node with {what}, and no running node is one",
            "label a node by yarn rmadmin -replaceLabelsOnNode, or choose another label or queue",
        )
    if facts.running:
        yield from _size_refusals(config, facts)


def _size_refusals(config: Config, facts: ClusterFacts) -> Iterator[ConfigError]:
    manager, yarn, partition = (
        ClusterManagerConfig.of(config),
        YarnConfig.of(config),
        facts.partition,
    )
    own = [n for n in facts.running if partition is None or partition.has(n.labels)]
    most_mb, most_cores = _granted(own or facts.running, facts.resource_manager)
    am_mb, am_cores = _granted(facts.running, facts.resource_manager)
    for key, value, limit, most in (
        (keys.CONTAINER_MEMORY_MB, manager.container_memory_mb, most_mb, f"{most_mb} MB"),
        (
            keys.CONTAINER_CPU_CORES,
            manager.container_cpu_cores,
            most_cores,
            counted(most_cores, "core"),
        ),
        (keys.YARN_AM_MEMORY_MB, yarn.am_memory_mb, am_mb, f"{am_mb} MB"),
        (keys.YARN_AM_CPU_CORES, yarn.am_cpu_cores, am_cores, counted(am_cores, "core")),
    ):
        if value > limit:
            rule = f"the cluster grants at most {most} to one container"
            yield key.error(value, rule, f"write {limit} or less")


def _granted(nodes: Sequence[Node], stated: Mapping[str, str]) -> tuple[int, int]:
    """Return the most memory, in MB, and cores that YARN grants to one container on these nodes."""
    largest_mb, largest_cores = (
        max(n.report.memory_mb for n in nodes),
        max(n.report.cores for n in nodes),
    )
    most_mb, most_cores = (whole_number(stated.get(key), LONG_MAX) for key in (MAX_MB, MAX_CORES))
    return (
        largest_mb if most_mb is None else min(largest_mb, most_mb),
        largest_cores if most_cores is None else min(largest_cores, most_cores),
    )


def _queue_refusals(name: str, queue: Queue | None, scheduler: Scheduler) -> Iterator[ConfigError]:
    key = keys.YARN_QUEUE.name
    if queue is None:
        # By its rules of placement, YARN may give each user a queue instead of the default one.
        if name != keys.YARN_QUEUE.default and not scheduler.grows(name):
            leaves = ", ".join(q.path for q in scheduler.queues if q.is_leaf)
            yield ConfigError(key, name, "YARN has no such queue", f"name one of {leaves}")
    elif not queue.is_leaf and not queue.grows:
        yield ConfigError(
            key, name, f"{queue.path} has queues below it and takes no job", "name one of these"
        )
    elif not queue.is_running:
        yield ConfigError(
            key, name, f"the queue is {queue.state}", "name another queue, or start this one"
        )


def _label_refusals(
    key: str, label: str, queue: Queue | None, facts: ClusterFacts
) -> Iterator[ConfigError]:
    kind = facts.scheduler.kind
    if kind != CAPACITY:
        rule = f"the cluster's {kind} has no node labels: the CapacityScheduler alone has"
        yield ConfigError(key, label, rule, f"leave {key} out")
    elif facts.resource_manager.get(LABELS_ENABLED, "true") != "true":
        rule = f"the cluster has no node labels: {LABELS_ENABLED} is false"
        remedy = f"leave {key} out, or enable them in the ResourceManager's yarn-site.xml"
        yield ConfigError(key, label, rule, remedy)
    elif queue is not None and not queue.may_use(label):
        allowed = ", ".join(sorted(queue.labels)) or "none"
        rule = f"the queue {queue.path} may not use nodes with this label; its labels: {allowed}"
        yield ConfigError(key, label, rule, "choose one of these, or another queue")


def warnings(config: Config, facts: ClusterFacts) -> Iterator[ConfigError]:
    """Yield why containers return late, or not always."""
    queue = YarnConfig.of(config).queue
    if facts.scheduler.kind in {CAPACITY, FAIR} and facts.scheduler.queue(queue) is None:
        rule = "YARN has no such queue now, and its rules of placement choose or make one"
        yield keys.YARN_QUEUE.error(queue, rule, "name a queue that exists")
    yield from _scheduling(config, facts)
    if facts.resource_manager:
        yield from _resource_manager(facts.resource_manager)
    if facts.node:
        yield from _node(config, facts)


def _scheduling(config: Config, facts: ClusterFacts) -> Iterator[ConfigError]:
    stated = facts.resource_manager
    key = CONTINUOUS if facts.scheduler.kind == FAIR else ASYNCHRONOUS
    known = stated if facts.scheduler.kind == FAIR else facts.queues_file
    if key in stated:
        known = {**known, key: stated[key]}
    if facts.scheduler.kind not in {CAPACITY, FAIR} or not known:
        return
    if known.get(key, "false") != "true":
        beat_ms = stated.get(HEARTBEAT_MS, "1000")
        wait_ms = ClusterManagerConfig.of(config).request_timeout_ms
        rule = (
            f"a host is granted only when its NodeManager beats, every {beat_ms} ms, at each start "
            f"and failover; after {wait_ms} ms a container looks for another host"
        )
        yield ConfigError(key, known.get(key, "false"), rule, "set it to true")


def _resource_manager(stated: Mapping[str, str]) -> Iterator[ConfigError]:
    if stated.get(RM_RECOVERY, "false") != "true":
        rule = "a ResourceManager that starts again ends the job and does not know it any more"
        yield ConfigError(RM_RECOVERY, "false", rule, "set it to true, with a store")
    elif stated.get(RM_WORK_PRESERVING, "true") != "true":
        rule = "a ResourceManager that starts again ends all containers of the job"
        yield ConfigError(RM_WORK_PRESERVING, "false", rule, "set it to true")


def _node(config: Config, facts: ClusterFacts) -> Iterator[ConfigError]:
    stated, where = facts.node, f" on {facts.node_name}"
    if stated.get(NM_RECOVERY, "false") != "true":
        wait_ms = ClusterManagerConfig.of(config).request_timeout_ms
        yield ConfigError(
            NM_RECOVERY,
            "false",
            f"containers{where} end with their NodeManager, and go to other hosts if it is not "
            f"back in {wait_ms} ms",
            "set it to true where NodeManagers are restarted while jobs run",
        )
    delay = stated.get(SIGKILL_DELAY_MS, "250")
    if delay.isascii() and delay.isdigit() and int(delay) < _ENOUGH_TO_STOP_MS:
        rule = (
            f"a container that YARN ends{where} has no time to close its stores, and reads more "
            "of its changelog when it is back"
        )
        yield ConfigError(SIGKILL_DELAY_MS, delay, rule, f"set it to {_ENOUGH_TO_STOP_MS} or more")
    is_enforced = stated.get(ENFORCED, "true") == "true"
    is_looked_at = not is_enforced
    if not (is_enforced and stated.get(CGROUPS, "false") == "true") and not (
        is_looked_at and stated.get(PMEM_CHECK, "true") == "true"
    ):
        yield ConfigError(
            ENFORCED if is_enforced else PMEM_CHECK,
            str(is_enforced).lower(),
            f"nothing ends a container{where} that outgrows {keys.CONTAINER_MEMORY_MB.name}, and "
            "the host may run out of memory with all that it has",
            f"enforce by cgroups ({CGROUPS} = true), or set {ENFORCED} to false and {PMEM_CHECK} "
            "to true",
        )
    if is_looked_at and stated.get(VMEM_CHECK, "true") == "true":
        rule = (
            f"address space counts as memory{where}, of which Java and RocksDB reserve far more "
            "than they use: YARN may kill containers at their start"
        )
        yield ConfigError(VMEM_CHECK, "true", rule, "set it to false")
