"""The scenario of a job on labelled nodes: written once, for every kind of cluster."""

from __future__ import annotations

from collections.abc import Mapping

from yarn_jobs import Job

from homeport.local_cluster.hadoop_conf import labelled_nodes


def stays_on_labelled_nodes(job: Job, values: Mapping[str, str]) -> None:
    """By its queue's default label or by its own; strict requests are granted, moves too.

    Where there are three labelled nodes, the job has standbys.
    """
    labelled = labelled_nodes(job.cluster.nodes)
    (other,) = set(job.cluster.nodes) - set(labelled)
    has_standbys = len(labelled) > 2
    job.values |= dict(values) | {
        "job.host-affinity.enabled": "true",
        "job.hotstandby.enabled": str(has_standbys).lower(),
        "cluster-manager.container.request.timeout.ms": "20000",
    }
    job.produce(60)
    done = job.call("run")
    assert done.returncode == 0, done.stderr
    assert "warning: " not in done.stderr
    job.learn(done.stdout)
    first = {p: c["host"] for p, c in job.wait_until_running().items()}
    assert len(first) == (6 if has_standbys else 3)
    assert set(first.values()) <= set(labelled)
    assert all(first[p] != first[p.partition("-")[0]] for p in first if "-" in p)
    am_has_label = values["yarn.queue"] == "streams" or "yarn.am.container.label" in values
    assert (job.am_host() in labelled) is am_has_label
    job.expects(60)
    assert _expired_requests(job) == []
    refused = job.operator("move", "0", other)
    assert refused.returncode == 1, refused.stdout
    assert other in refused.stderr
    job.kill()
    job.run()
    assert {p: c["host"] for p, c in job.wait_until_running().items()} == first
    taken = {first["0"], first.get("0-0", "")}
    target = next(node for node in labelled if node not in taken)
    done = job.operator("move", "0", target)
    assert done.returncode == 0, done.stderr
    assert job.wait_until_running()["0"]["host"] == target
    job.produce(60, first=60)
    job.expects(120)
    assert _expired_requests(job) == []
    job.kill()
    job.judge_history()


def _expired_requests(job: Job) -> list[str]:
    """The requests that YARN has not granted in time: none was for a host in vain."""
    causes = [str(decision["cause"]) for decision in job.driver_events("decision")]
    assert causes
    return [cause for cause in causes if "request-expiry" in cause]
