"""``homeport run-local --trial``: another job in all that a job keeps."""

from __future__ import annotations

from homeport.cli.host.run_processor import as_trial
from homeport.config.config import Config


def test_a_trial_has_an_id_and_changelogs_of_its_own() -> None:
    """Inputs and outputs, and what else is said of a changelog, are those of the job."""
    job = {
        "job.name": "totals",
        "task.inputs": "kafka.in",
        "task.outputs": "kafka.out",
        "stores.a.changelog": "kafka.a-log",
        "stores.a.changelog.replication.factor": "2",
        "stores.b.changelog": "b-log",
    }
    changed = {
        "job.id": "1-trial",
        "stores.a.changelog": "kafka.a-log-trial",
        "stores.b.changelog": "b-log-trial",
    }
    assert dict(as_trial(Config(job))) == {**job, **changed}
    assert as_trial(Config({**job, "job.id": "7"}))["job.id"] == "7-trial"
