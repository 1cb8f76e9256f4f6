"""Groups of tests on the workers of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import shared_clusters
import worker_groups
from worker_groups import ends_clusters, group_of, precedes_clusters, turn_of

from homeport.local_cluster import processes

_INTEGRATION = Path(__file__).resolve().parents[2] / "integration"


def test_a_module_stays_together() -> None:
    """Its fixtures are made once."""
    one, other = "tests/unit/test_a.py::test_x[1@2]", "tests/unit/test_a.py::TestB::test_y"
    assert group_of(one) == group_of(other) == "tests/unit/test_a.py"


def test_each_module_that_disturbs_its_cluster_has_a_group() -> None:
    """Two such modules on two workers would each start a cluster of three nodes."""
    modules = {f"disturbed/{file.name}" for file in (_INTEGRATION / "disturbed").glob("test_*.py")}
    listed = worker_groups._GROUPS
    assert modules <= set(listed)
    assert [name for name in listed if not (_INTEGRATION / name).is_file()] == []


def test_the_longest_begin_first() -> None:
    """What takes minutes, then integration tests, then searches, then unit tests."""
    ordered = [
        "tests/integration/disturbed/test_attempts.py::test_a",
        "tests/integration/test_faults.py::test_a",
        "tests/unit/world/test_rules.py::test_a",
        "tests/integration/test_restore.py::test_a",
        "tests/exhaustive/test_search.py::test_a",
        "tests/unit/test_tidy.py::test_a",
    ]
    turns = [turn_of(nodeid) for nodeid in ordered]
    assert turns == sorted(set(turns))


def test_clusters_end_with_the_tests_that_need_them() -> None:
    """Those of a group with the group, all others before the first search or unit test."""
    own, same = "disturbed/test_attempts.py::test_a", "disturbed/test_outages.py::test_a"
    other, search = "test_restore.py::test_a", "tests/exhaustive/test_search.py::test_a"
    own, same, other = (f"tests/integration/{name}" for name in (own, same, other))
    assert not ends_clusters(own, same)
    assert ends_clusters(own, other)
    assert not ends_clusters(other, other)
    assert ends_clusters(other, search)
    assert ends_clusters(other, None)
    assert not ends_clusters(search, None)


def test_a_long_unit_test_at_the_beginning_ends_no_cluster() -> None:
    """Its worker has the tests of clusters still before it."""
    unit, cluster = "tests/unit/world/test_rules.py::test_a", "tests/cluster/test_demo.py::test_a"
    assert precedes_clusters(unit)
    assert precedes_clusters(cluster)
    for following in ("tests/exhaustive/test_search.py::test_a", "tests/unit/a.py::test_a", None):
        assert not precedes_clusters(following)


def test_each_module_that_begins_early_is_there() -> None:
    """A name that has changed would begin last."""
    modules = [name for name in worker_groups._FIRST if name.endswith(".py")]
    assert modules
    assert all((_INTEGRATION.parents[1] / name).is_file() for name in modules)


def test_the_last_worker_stops_the_clusters_of_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their logs stay until the run has ended; a worker whose tests go on keeps them up."""
    downs: list[tuple[str, bool]] = []

    class Cluster:
        def __init__(self, name: str, nodes: int = 3) -> None:
            self.name, self.log_dir = name, nodes

        attach = classmethod(lambda cls, name: cls(name))

        def down(self, *, keep_logs: bool) -> None:
            downs.append((self.name, keep_logs))

    monkeypatch.setattr(shared_clusters, "LocalUnderTest", Cluster)
    monkeypatch.setenv(shared_clusters.VARIABLE, str(tmp_path))
    own, other = processes.own(), processes.ProcessId(1, 0)
    monkeypatch.setattr(shared_clusters, "workers", lambda: [own, other])
    (tmp_path / "owner").touch()
    (tmp_path / "kafka").write_text("test-1-kafka")
    shared_clusters.release()
    assert downs == []
    (tmp_path / f"{own.pid}.done").rename(tmp_path / "1.done")
    shared_clusters.release()
    shared_clusters.release()
    assert downs == [("test-1-kafka", True)]
    assert shared_clusters.end(keep_logs=False) == []
    assert downs[1:] == [("test-1-kafka", False)]
