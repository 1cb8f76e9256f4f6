"""The fault kit as a user has it: a job of a properties file, faults by a seed, an exact result."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from yarn_jobs import Job

from homeport.config.errors import ConfigError, UnavailableError
from homeport.testing.chaos import Chaos

KINDS = ("kill-container", "kill-launcher", "pause-container-long", "kill-driver")


@pytest.mark.long
def test_a_job_is_exact_after_the_faults_of_a_seed(
    make_job: Callable[[str], Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input comes before and after; each fault has happened, and the job works again by itself."""
    job = make_job("disturbed")
    job.values["cluster-manager.container.retry.count"] = "1000"
    for name, value in job.cluster.env().items():
        monkeypatch.setenv(name, value)
    job.produce(300)
    job.run()
    job.wait_until_running()
    lines: list[str] = []
    path, cluster = str(job.path), job.cluster.name
    chaos = Chaos.on(path, 7, cluster=cluster, kinds=KINDS, faults=5, say=lines.append)
    job.produce(300, first=300)
    done = chaos.run()
    assert {fault.kind for fault in done} == set(KINDS)
    assert [fault.number for fault in done] == [1, 2, 3, 4, 5]
    assert lines[0] == "chaos: seed 7, 5 faults"
    assert any(line.startswith("fault  5 at ") for line in lines)
    job.produce(60, first=600)
    job.expects(660)
    with pytest.raises(ConfigError, match=r"retry\.count = '2': 5 faults may be charged"):
        Chaos.on(
            path,
            7,
            cluster=cluster,
            faults=5,
            overrides=["cluster-manager.container.retry.count=2"],
        )
    job.kill()
    job.judge_history()
    with pytest.raises(UnavailableError, match="does not run"):
        Chaos.on(path, 7, cluster=cluster)
