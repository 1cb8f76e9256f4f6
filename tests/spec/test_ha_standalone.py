"""HA-STANDALONE, sentence by sentence: what no test of another folder shows by itself.

The others are in ``ha_standalone.toml``.
"""

from __future__ import annotations

import inspect

import pytest

from homeport.config.config import Config
from homeport.config.java_names import Kind, known_names
from homeport.job_coordinator.grouper.factories import task_name_grouper
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.grouper.task_name_grouper import TaskNameGrouper
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import Member, Plan

PLACES = {ProcessorId("p1"): Host("h1"), ProcessorId("p2"): Host("h2")}


def _config(grouper: str) -> Config:
    keys = {
        "job.name": "j",
        "job.default.system": "kafka",
        "job.container.count": "2",
        "job.host-affinity.enabled": "true",
        "task.class": "m:C",
        "task.inputs": "kafka.in",
        "task.name.grouper.factory": grouper,
    }
    return Config(keys)


def _model_of(
    grouper: str, before: PreviousAssignment, processors: list[ProcessorId] | None
) -> JobModel:
    counts = {SystemStream("kafka", "in"): 4}
    return calculate_job_model(_config(grouper), counts, before, processors)


@pytest.mark.parametrize("grouper", known_names(Kind.TASK_NAME_GROUPER))
def test_any_grouper_serves_either_way_of_deployment(grouper: str) -> None:
    """The same class groups for numbered containers and for processors of any names.

    "any TaskNameGrouper should be usable interchangeably between yarn and standalone deployment
    models"
    """
    standalone = _model_of(grouper, PreviousAssignment(processor_hosts=PLACES), list(PLACES))
    yarn = _model_of(grouper, PreviousAssignment(), None)
    for model, ids in ((standalone, set(PLACES)), (yarn, {ProcessorId("0"), ProcessorId("1")})):
        assert model.containers.keys() <= ids
        assert sum(len(c.tasks) for c in model.containers.values()) == 4


def test_groupers_have_one_method() -> None:
    """A pure function of tasks, task locality and processor locality, and no live object.

    "provide a single unified contract" and "one method in TaskNameGrouper interface clearly
    defining the contract"
    """
    assert TaskNameGrouper.__abstractmethods__ == {"group"}
    for name in known_names(Kind.TASK_NAME_GROUPER):
        grouper = task_name_grouper(_config(name))
        assert list(inspect.signature(grouper.group).parameters) == [
            "tasks",
            "task_locality",
            "processor_locality",
        ]


def test_a_version_has_the_assignment_alone() -> None:
    """Where tasks are is in nodes of their own, one for each task.

    "locality information of the stream processors will be stored seperately from the JobModel."
    """
    before = PreviousAssignment(
        task_hosts={TaskName("Partition 0"): Host("long-ago")}, processor_hosts=PLACES
    )
    model = _model_of("group-by-container-ids", before, list(PLACES))
    members = tuple(
        Member(p, n, 1, tuple(sorted(model.containers[p].tasks))) for n, p in enumerate(PLACES)
    )
    stored = nodes.encode_plan(Plan(1, members, model=model), writer=0)
    read = nodes.decode_plan(1, stored.value, stored.segments).model
    assert read.config == Config({})
    assert read.containers == model.containers
    assert "long-ago" not in repr(read)
    assert nodes.decode_location(TaskName("Partition 0"), b"long-ago") == "long-ago"


def test_a_container_model_says_where_its_processor_is() -> None:
    """On YARN the allocator decides that afterwards, and nothing is said.

    "New field added denoting the physical locationId."
    """
    known = PreviousAssignment(processor_hosts=PLACES)
    standalone = _model_of("group-by-container-ids", known, list(PLACES))
    assert {p: c.location_id for p, c in standalone.containers.items()} == PLACES
    yarn = _model_of("group-by-container-ids", known, None)
    assert {c.location_id for c in yarn.containers.values()} == {None}


def test_the_tree_is_the_documents() -> None:
    """Folders and root have its names; what fencing needs is beside them.

    "zkBaseRootPath/$appName-$appId-$JobName-$JobId-$stageId/"
    """
    root = nodes.root_of("/base", app=("app", "1"), job=("job", "2"), stage="3")
    assert root == "/base/app-1-job-2-3"
    assert (nodes.PROCESSORS, nodes.JOB_MODELS, nodes.BARRIERS, nodes.LOCALITY) == (
        "processors",
        "jobModels",
        "barriers",
        "localityData",
    )
    assert nodes.node_name(1) == "processor.0000000001"
