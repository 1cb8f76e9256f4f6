"""The process that has a directory open, without a hand on its lock."""

from __future__ import annotations

import json
import os
from pathlib import Path

from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import LOCK_FILE, NO_WAIT, Holder
from homeport.container.storage.host_survey import lock_holder
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation


def test_a_container_is_named_as_its_lock_file_names_it(tmp_path: Path) -> None:
    """For as long as the kernel says that the process holds the lock, and no longer."""
    own = Holder.of("mine-1", Incarnation(ProcessorId("0"), 3), Host("nm1"))
    held = StoreDirectory(tmp_path, NO_WAIT, own)
    assert lock_holder(tmp_path) == own
    held.release()
    assert lock_holder(tmp_path) is None


def test_the_kernels_answer_stands_above_the_files(tmp_path: Path) -> None:
    """A file that names an earlier holder, or none, does not count."""
    held = StoreDirectory(tmp_path)
    for text in (json.dumps({"pid": 1, "host": "nm9", "since_ms": 5}), "cut sh", ""):
        (tmp_path / LOCK_FILE).write_text(text)
        found = lock_holder(tmp_path)
        assert found is not None
        assert (found.pid, found.processor_id) == (os.getpid(), None)
        assert found.host != "nm9"
    held.release()


def test_a_directory_that_was_never_opened_has_no_holder(tmp_path: Path) -> None:
    """There is no lock file; none is made by asking."""
    assert lock_holder(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
