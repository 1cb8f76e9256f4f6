"""Names of state directories."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.errors import StoreError
from homeport.config.path_names import job_folder
from homeport.container.progress.host_directories import task_directory
from homeport.job_coordinator.model.ids import TaskName


def test_names_are_samzas() -> None:
    """A space becomes an underscore; brackets and commas stay."""
    assert task_directory("store1", TaskName("Partition 0")) == PurePosixPath("store1/Partition_0")
    name = TaskName("SystemStreamPartition [kafka, in, 0]")
    expected = PurePosixPath("store1/SystemStreamPartition_[kafka,_in,_0]")
    assert task_directory("store1", name) == expected
    assert job_folder("my-job", "1") == "my-job-1"


def test_different_jobs_have_different_roots() -> None:
    """A hyphen of the id is escaped (safety K3)."""
    assert job_folder("a", "1-0") != job_folder("a-1", "0")


@given(st.text(min_size=0, max_size=20))
def test_a_name_is_always_one_part_below_its_parent(text: str) -> None:
    """No task name leads out of its store's directory, or into another's."""
    path = task_directory("s", TaskName(text))
    assert len(path.parts) == 2
    assert path.parts[1] not in {"", ".", ".."}
    assert "\0" not in str(path)


def test_a_name_that_no_file_system_takes_is_refused() -> None:
    """A path part has at most 200 bytes here."""
    with pytest.raises(StoreError):
        task_directory("s", TaskName("x" * 201))
