"""scripts/bench footprint: which process is what, and the sums that its table shows."""

from __future__ import annotations

import pytest
from benchmarks.footprint.runs import Taken, role_of, rows_of


@pytest.mark.parametrize(
    ("line", "comm", "role"),
    [
        ("/opt/bin/python -m homeport.appmaster.programs.supervisor", "python", "AM: supervisor"),
        ("python -m homeport.appmaster.programs.lease_keeper", "python", "AM: keeper"),
        ("python -m homeport.appmaster.programs.lease_keeper", "spare", "AM: spare of the keeper"),
        ("java -Xmx128M com.anaconda.skein.ApplicationMaster x", "java", "AM: Skein's JVM"),
        ("/bin/bash -c java com.anaconda.skein.ApplicationMaster", "bash", "shells of YARN"),
        ("java -cp jars org.apache.spark.deploy.SparkSubmit", "java", "Spark's JVM"),
        ("java org.apache.hadoop.yarn.server.nodemanager.NodeManager", "java", None),
        ("cat", "cat", "other processes"),
    ],
)
def test_a_process_is_known_by_its_command(line: str, comm: str, role: str | None) -> None:
    """A daemon of the cluster is none of the job's."""
    assert role_of(line.split(), comm) == role


def test_the_table_has_the_job_a_container_and_each_role() -> None:
    """The largest role comes first; a limit is that of the sum."""
    found = {
        "launcher": Taken(2, 40, 6, 0.002),
        "AM: driver": Taken(1, 60, 20, 0.01),
        "container": Taken(2, 200, 80, 0.008),
    }
    rows = list(rows_of(found, 2, {"job": 290, "cpu": 3, "container": 130}))
    values = [(row.number, row.reached) for row in rows]
    assert values[:3] == [(300, False), (pytest.approx(2), True), (120, True)]
    assert rows[0].what == "the job: 5 processes, 106 threads, 2.00 % of a core"
    assert [row.what.partition(":")[0] for row in rows[3:]] == ["  container", "  AM", "  launcher"]
