"""Groupers that a job brings itself: how they are found, and how their faults are reported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.factories import (
    has_own_grouper,
    ssp_grouper,
    task_name_grouper,
)
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.model.job_model import JobModel, SystemStream

BY = "job.systemstreampartition.grouper.factory"
INTO = "task.name.grouper.factory"
_MODULE = '''
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.ssp_grouper import SystemStreamPartitionGrouper
from homeport.job_coordinator.grouper.task_name_grouper import TaskNameGrouper


class Tens(SystemStreamPartitionGrouper):
    """Ten partitions each."""

    def group(self, partitions, processor_ids):
        tasks = {}
        for ssp in partitions:
            tasks.setdefault(f"Ten {ssp.partition // 10}", []).append(ssp)
        return tasks


class Alone(TaskNameGrouper):
    """A container for each task, named by what the configuration says."""

    def group(self, tasks, task_locality, processor_locality):
        return {self.config["my.prefix"] + task.task_name: [task.task_name] for task in tasks}


class OfTasks(TaskNameGrouper):
    def group(self, tasks):
        return {"one": [task.task_name for task in tasks]}


class OfTasksAndIds(TaskNameGrouper):
    def group(self, tasks, container_ids):
        return {container_ids[-1]: [task.task_name for task in tasks]}


class OfAnything(TaskNameGrouper):
    def group(self, *arguments):
        tasks, task_locality, processor_locality = arguments
        return {next(iter(processor_locality)): [task.task_name for task in tasks]}


class Forgetful(SystemStreamPartitionGrouper):
    def group(self, partitions, processor_ids):
        return {"all": list(partitions)[1:]}


class Doubling(TaskNameGrouper):
    def group(self, tasks, task_locality, processor_locality):
        return {p: [task.task_name for task in tasks] for p in processor_locality}


class Silent(TaskNameGrouper):
    def group(self, tasks, task_locality, processor_locality):
        pass


class Failing(TaskNameGrouper):
    def group(self, tasks, task_locality, processor_locality):
        raise KeyError("my\\nkey")


class Exiting(TaskNameGrouper):
    def group(self, tasks, task_locality, processor_locality):
        raise SystemExit(0)


class ExitingAtBirth(TaskNameGrouper):
    def __init__(self, config):
        raise SystemExit

    def group(self, tasks, task_locality, processor_locality):
        return {}


class Refusing(TaskNameGrouper):
    def group(self, tasks, task_locality, processor_locality):
        raise ConfigError("my.prefix", None, "it is required", "set it")


class Unborn(TaskNameGrouper):
    def __init__(self, config):
        raise ValueError("no")

    def group(self, tasks, task_locality, processor_locality):
        return {}


class Unfinished(TaskNameGrouper):
    pass


class Stranger:
    pass
'''


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A job's package with groupers in it, on the import path."""
    (tmp_path / "own_groupers_of_a_job.py").write_text(_MODULE)
    (tmp_path / "broken_module_of_a_job.py").write_text("raise RuntimeError('at import')\n")
    (tmp_path / "exiting_module_of_a_job.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    monkeypatch.undo()


def _model(key: str, name: str) -> JobModel:
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "kafka",
            "job.container.count": "2",
            "task.inputs": "kafka.a",
            "my.prefix": "for ",
            key: name,
        }
    )
    return calculate_job_model(config, {SystemStream("kafka", "a"): 20}, NOTHING)


@pytest.mark.parametrize("separator", [":", "."])
def test_own_groupers_are_used_by_either_form_of_their_name(separator: str) -> None:
    """``module:Class`` and ``module.Class`` name the same; the grouper has the configuration."""
    model = _model(BY, f"own_groupers_of_a_job{separator}Tens")
    tasks = {name: t for c in model.containers.values() for name, t in c.tasks.items()}
    assert {name: len(t.system_stream_partitions) for name, t in tasks.items()} == {
        "Ten 0": 10,
        "Ten 1": 10,
    }
    assert len(_model(INTO, f"own_groupers_of_a_job{separator}Alone").containers) == 20
    assert "for Partition 7" in _model(INTO, f"own_groupers_of_a_job{separator}Alone").containers


@pytest.mark.parametrize(("name", "container"), [("OfTasks", "one"), ("OfTasksAndIds", "1")])
def test_the_deprecated_forms_of_a_grouper_are_called(name: str, container: str) -> None:
    """HA-STANDALONE: ``group(tasks)`` and ``group(tasks, containersIds)``, with a warning."""
    with pytest.warns(FutureWarning, match=rf"{INTO} = {name}: .*write group\(self, tasks, task_l"):
        model = _model(INTO, f"own_groupers_of_a_job:{name}")
    assert list(model.containers) == [container]


@pytest.mark.parametrize(
    ("key", "name", "is_own"),
    [
        (BY, "own_groupers_of_a_job:Tens", True),
        (INTO, "own_groupers_of_a_job:Alone", True),
        (BY, "group-by-partition", False),
    ],
)
def test_which_processes_need_the_package_to_group(key: str, name: str, *, is_own: bool) -> None:
    """Either grouper may be the job's; where neither is, no process needs the package."""
    assert (
        has_own_grouper(Config({"job.name": "j", "job.default.system": "kafka", key: name}))
        is is_own
    )


_SUBCLASS = (
    "it must name a subclass of TaskNameGrouper of "
    "homeport.job_coordinator.grouper.task_name_grouper that defines group; correct the grouper"
)
_NO_MODEL = "its answer makes no JobModel: "


@pytest.mark.parametrize(
    ("key", "name", "stated"),
    [
        (BY, "Forgetful", f"{_NO_MODEL}SystemStreamPartition [kafka, a, 0] belongs to no task"),
        (INTO, "Doubling", f"{_NO_MODEL}task 'Partition 0' is in container '0' and in '1'"),
        (INTO, "Silent", f"{_NO_MODEL}it is None and no mapping"),
        (INTO, "Failing", "the grouper has failed: KeyError: 'my\\nkey'; correct the grouper"),
        (INTO, "Exiting", "the grouper has failed: SystemExit: 0; correct the grouper"),
        (INTO, "Unborn", "the grouper has failed: ValueError: no; correct the grouper"),
        (INTO, "ExitingAtBirth", "the grouper has failed: SystemExit; correct the grouper"),
        (INTO, "Unfinished", _SUBCLASS),
        (INTO, "Stranger", _SUBCLASS),
        (INTO, "Tens", _SUBCLASS),
        (INTO, "Missing", "the module own_groupers_of_a_job has no 'Missing'; correct the name"),
    ],
)
def test_a_fault_is_one_line_that_names_key_and_class(key: str, name: str, stated: str) -> None:
    """Whatever is wrong with the class or its answer."""
    name = f"own_groupers_of_a_job:{name}"
    with pytest.raises(ConfigError) as caught:
        _model(key, name)
    line = str(caught.value)
    assert line.startswith(f"{key} = {name!r}: {stated}")
    assert "\n" not in line


def test_a_grouper_may_refuse_the_configuration_in_its_own_words() -> None:
    """A ConfigError that it raises is left as it is."""
    with pytest.raises(ConfigError, match=r"^my\.prefix is missing: it is required; set it$"):
        _model(INTO, "own_groupers_of_a_job:Refusing")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no_such_module_of_a_job:G", "ModuleNotFoundError: No module named"),
        (
            "broken_module_of_a_job:G",
            "RuntimeError: at import; see that it is in yarn.package.path",
        ),
        ("exiting_module_of_a_job:G", "SystemExit: 0; see that it is in yarn.package.path"),
    ],
)
def test_a_module_that_does_not_import_is_reported(name: str, why: str) -> None:
    """The reason, and where the module is to be."""
    with pytest.raises(ConfigError, match=rf"^{BY} = '{name}': the module cannot be .*: {why}"):
        _model(BY, name)


@pytest.mark.parametrize(
    "name", ["mine", "org.apache.samza.container.grouper.OtherFactory", "a:b:c"]
)
def test_a_name_that_is_neither_ours_nor_a_class_is_refused(name: str) -> None:
    """The names that there are, and the form of a class of one's own."""
    config = Config({"job.name": "j", "job.default.system": "kafka", BY: name, INTO: name})
    with pytest.raises(ConfigError, match=r"group-by-partition.*or module:Class of the job's own"):
        ssp_grouper(config)
    with pytest.raises(ConfigError, match="no such grouper"):
        task_name_grouper(config)
