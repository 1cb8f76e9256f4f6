"""Each thing that host affinity needs of a cluster and may miss has its line; else none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.yarn import host_affinity as needs
from homeport.appmaster.yarn.host_affinity import ClusterFacts, refusals, warnings
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
from homeport.job_coordinator.model.ids import Host

JOB = {
    "job.name": "j",
    "job.default.system": "kafka",
    "job.host-affinity.enabled": "true",
    "yarn.queue": "streams",
}
LABEL = {"yarn.container.label": "state"}
STATE = frozenset({"state"})
QUEUES = (
    Queue("root", is_leaf=False),
    Queue("root.default"),
    Queue("root.streams", labels=STATE),
    Queue("root.stopped", state="STOPPED"),
)
RM = {
    needs.ASYNCHRONOUS: "true",
    needs.CONTINUOUS: "true",
    needs.LABELS_ENABLED: "true",
    needs.RM_RECOVERY: "true",
    needs.RM_WORK_PRESERVING: "true",
}
NODE = {
    needs.NM_RECOVERY: "true",
    needs.SIGKILL_DELAY_MS: "1000",
    needs.PMEM_CHECK: "true",
    needs.VMEM_CHECK: "false",
    needs.ENFORCED: "false",
}


def _node(labels: frozenset[str] = frozenset(), mb: int = LONG_MAX, cores: int = LONG_MAX) -> Node:
    return Node(HostReport(Host("nm1"), None, mb, cores, mb, cores), labels)


WELL = ClusterFacts(
    scheduler=Scheduler(CAPACITY, QUEUES),
    running=(_node(STATE, 4096, 4), _node(frozenset(), 2048, 8)),
    partition=Partition(""),
    resource_manager=RM,
    node=NODE,
    node_name="nm1",
    queues_file={"yarn.scheduler.capacity.root.queues": "default,streams"},
)
FAIR_WELL = replace(WELL, scheduler=Scheduler(FAIR, QUEUES), partition=None)


def lines(facts: ClusterFacts, **values: str) -> tuple[list[str], list[str]]:
    """Refusals and warnings for the job with these values, dots as double underlines."""
    given = {key.replace("__", "."): value for key, value in values.items()}
    config = Config(JOB | given)
    refused = [str(error) for error in refusals(config, facts)]
    return refused, [str(warning) for warning in warnings(config, facts)]


@pytest.mark.parametrize("facts", [WELL, FAIR_WELL])
def test_nothing_is_said_where_all_is_well(facts: ClusterFacts) -> None:
    """With either scheduler."""
    assert lines(facts) == ([], [])


def test_what_daemons_keep_back_is_not_guessed() -> None:
    """No settings, no file of queues: nothing is said of them."""
    facts = replace(WELL, resource_manager={}, node={}, queues_file={})
    assert lines(facts) == ([], [])


REFUSED: list[tuple[dict[str, Any], dict[str, str], str]] = [
    (
        {"scheduler": Scheduler(FIFO), "partition": None},
        {},
        "yarn.resourcemanager.scheduler.class = 'fifoScheduler': it takes a request for one",
    ),
    ({}, {"yarn__queue": "none"}, "yarn.queue = 'none': YARN has no such queue; name one of"),
    ({}, {"yarn__queue": "stopped"}, "yarn.queue = 'stopped': the queue is STOPPED"),
    ({}, {"yarn__queue": "root"}, "yarn.queue = 'root': root has queues below it"),
    (
        {"scheduler": Scheduler(FAIR, QUEUES), "partition": None},
        {"yarn__container__label": "state"},
        "yarn.container.label = 'state': the cluster's fairScheduler has no node labels",
    ),
    (
        {"resource_manager": RM | {needs.LABELS_ENABLED: "false"}, "partition": None},
        {"yarn__container__label": "state"},
        "yarn.container.label = 'state': the cluster has no node labels: yarn.node-labels.ena",
    ),
    (
        {},
        {"yarn__container__label": "state", "yarn__am__container__label": "gpu"},
        "yarn.am.container.label = 'gpu': the queue root.streams may not use nodes with this",
    ),
    (
        {"partition": Partition("state"), "running": (_node(),)},
        {"yarn__container__label": "state"},
        "yarn.container.label = 'state': containers would need a node with the label 'state'",
    ),
    (
        {"partition": Partition(""), "running": (_node(STATE),)},
        {},
        "yarn.queue = 'streams': containers would need a node with no label",
    ),
    (
        {},
        {"cluster-manager__container__memory__mb": "2049"},
        "cluster-manager.container.memory.mb = '2049': the cluster grants at most 2048 MB",
    ),
    (
        {"resource_manager": RM | {needs.MAX_CORES: "3"}},
        {"cluster-manager__container__cpu__cores": "4"},
        "cluster-manager.container.cpu.cores = '4': the cluster grants at most 3 cores to one",
    ),
    (
        {"resource_manager": {needs.MAX_MB: "many"}},
        {"yarn__am__container__memory__mb": "4097"},
        "yarn.am.container.memory.mb = '4097': the cluster grants at most 4096 MB to one",
    ),
    (
        {"partition": Partition("state"), "running": (_node(STATE, 4096, 1),)},
        LABEL | {"yarn__am__container__cpu__cores": "2"},
        "yarn.am.container.cpu.cores = '2': the cluster grants at most 1 core to one",
    ),
]


@pytest.mark.parametrize(("change", "values", "line"), REFUSED)
def test_a_cluster_that_cannot_have_the_job_is_refused(
    change: dict[str, Any], values: dict[str, str], line: str
) -> None:
    """One line that begins so, and no other.

    A container fits by the largest of its nodes, and by YARN's maximum where that is known.
    """
    refused, _ = lines(replace(WELL, **change), **values)
    assert [x[: len(line)] for x in refused] == [line]


def test_a_queue_that_yarn_makes_or_chooses_is_not_refused() -> None:
    """One below a parent that grows; the default one, for which there may be rules of placement."""
    parents = (Queue("root", is_leaf=False), Queue("root.u", is_leaf=False, grows=True))
    growing = Scheduler(CAPACITY, parents)
    facts = replace(WELL, scheduler=growing)
    assert lines(facts, yarn__queue="u.ada")[0] == []
    refused, (warned,) = lines(facts, yarn__queue="default")
    assert refused == []
    assert warned.startswith("yarn.queue = 'default': YARN has no such queue now")
    assert lines(facts, yarn__queue="ada")[0] != []


@pytest.mark.parametrize(
    ("facts", "part", "values", "line"),
    [
        (
            FAIR_WELL,
            "resource_manager",
            {needs.CONTINUOUS: "false", needs.HEARTBEAT_MS: "3000"},
            f"{needs.CONTINUOUS} = 'false': a host is granted only when its NodeManager beats, e",
        ),
        (WELL, "resource_manager", {needs.ASYNCHRONOUS: "false"}, f"{needs.ASYNCHRONOUS} = 'fa"),
        (WELL, "resource_manager", {needs.RM_RECOVERY: "false"}, f"{needs.RM_RECOVERY} = 'false'"),
        (WELL, "resource_manager", {needs.RM_WORK_PRESERVING: "false"}, needs.RM_WORK_PRESERVING),
        (WELL, "node", {needs.NM_RECOVERY: "false"}, f"{needs.NM_RECOVERY} = 'false': containers"),
        (WELL, "node", {needs.SIGKILL_DELAY_MS: "250"}, f"{needs.SIGKILL_DELAY_MS} = '250': a con"),
        (WELL, "node", {needs.PMEM_CHECK: "false"}, f"{needs.PMEM_CHECK} = 'false': nothing ends"),
        (WELL, "node", {needs.ENFORCED: "true"}, f"{needs.ENFORCED} = 'true': nothing ends a cont"),
        (WELL, "node", {needs.VMEM_CHECK: "true"}, f"{needs.VMEM_CHECK} = 'true': address space"),
    ],
)
def test_what_costs_time_or_places_is_a_warning(
    facts: ClusterFacts, part: str, values: dict[str, str], line: str
) -> None:
    """One line that begins so, and no other."""
    change: dict[str, Any] = {part: {**getattr(facts, part), **values}}
    changed = replace(facts, **change)
    refused, warned = lines(changed)
    assert refused == []
    assert [x[: len(line)] for x in warned] == [line]


def test_the_cost_of_heartbeats_is_named_with_the_clusters_and_the_jobs_times() -> None:
    """How often a node beats, and how long a container waits for its host."""
    slow = {**RM, needs.CONTINUOUS: "false", needs.HEARTBEAT_MS: "3000"}
    (warned,) = lines(replace(FAIR_WELL, resource_manager=slow))[1]
    assert "every 3000 ms" in warned
    assert "after 5000 ms a container looks for another host" in warned


def test_cgroups_enforce_memory_without_yarns_own_look() -> None:
    """The kernel ends what outgrows its group; address space does not count then."""
    by_cgroups = {needs.ENFORCED: "true", needs.CGROUPS: "true", needs.VMEM_CHECK: "true"}
    assert lines(replace(WELL, node={**NODE, **by_cgroups})) == ([], [])


def test_asynchronous_scheduling_is_known_from_the_clients_file_of_queues() -> None:
    """The ResourceManager does not show its own; a client without the file knows nothing."""
    stated = {key: value for key, value in RM.items() if key != needs.ASYNCHRONOUS}
    facts = replace(WELL, resource_manager=stated)
    (warned,) = lines(facts)[1]
    assert warned.startswith(needs.ASYNCHRONOUS)
    assert lines(replace(facts, queues_file={}))[1] == []
    assert lines(replace(facts, queues_file={needs.ASYNCHRONOUS: "true"}))[1] == []
