"""``homeport migrate``: a job of YARN's goes on standalone, or the reverse, with its state."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer

from homeport.appmaster.cli import submission_claim
from homeport.appmaster.cli.job import Job
from homeport.appmaster.cli.waiting import Waiter
from homeport.appmaster.job_model.migration import Migration
from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.standalone_keys import YARN, ZOOKEEPER
from homeport.config.errors import HomeportError
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig
from homeport.job_coordinator.cli.job_view import stream_place
from homeport.job_coordinator.cli.options import ConfigPath, Overrides, loaded, new_app, note
from homeport.job_coordinator.kafka.fencing import fence
from homeport.job_coordinator.metadata.epochs import EpochManager, Submission
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.job_coordinator.zookeeper.handover_nodes import handover_nodes

_TIMEOUT_S = 15.0
_CLAIM_LIMIT_S = 30.0


class Where(StrEnum):
    """Where the job is to run next."""

    ZOOKEEPER = ZOOKEEPER
    YARN = YARN


app = new_app()


@app.command(name="migrate")
def migrate(
    config_path: ConfigPath,
    to: Annotated[Where, typer.Option("--to", help="Where the job is to run next.")],
    config: Overrides = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the steps, and do none.")
    ] = False,
) -> None:
    """The stopped job may run there next, on the stores that its hosts have.

    Locations of tasks and the numbers of incarnations are carried over, and what ran before is
    fenced. A migration that was cut off is run again; one that is done changes nothing.
    HADOOP_CONF_DIR names the folder with the configuration of the cluster, and the configuration
    of the job names ZooKeeper.
    """
    named = Config({k: v for k, v in loaded(config_path, config).items() if k != _FACTORY})
    job = Job(named, ResourceManagerRest.from_environment(os.environ), named)
    stream_place(named)
    with handover_nodes(named, _TIMEOUT_S) as nodes, job.stream() as store:
        job.require_not_running(store)
        migration = Migration(named, store, nodes, lambda found: fence_all(named, found))
        steps = migration.steps(to.value)
        if not steps:
            print(f"nothing to change: the job runs by {to.value}, or has no state elsewhere")
            return
        if dry_run:
            for number, step in enumerate(steps, 1):
                print(f"{number}. {step.text}")
            return
        number = submission_claim.take_number(
            store,
            uuid.uuid4().hex,
            lambda: Waiter(_CLAIM_LIMIT_S).polls_logging("run-job, or another migration"),
            lambda: job.require_not_running(store),
        )
        try:
            for step in migration.steps(to.value):
                note(step.text)
                step.do()
        finally:
            with contextlib.suppress(HomeportError):
                withdrawn = Submission(number, submission_claim.WITHDRAWN)
                EpochManager(store).write_submission(withdrawn)
    print(f"the job may run by {to.value} now")


_FACTORY = keys.JOB_COORDINATOR_FACTORY.name


def fence_all(config: Config, incarnations: Iterable[Incarnation]) -> None:
    """None of them commits anything more; what they have open is aborted.

    Raises:
        UnavailableError: Kafka did not do it in time.
    """
    job = JobConfig.of(config)
    system = SystemConfig.of(config, TaskConfig.of(config).checkpoint_system)
    for incarnation in incarnations:
        fence(system, transactional_id(job.name, job.id, incarnation), _TIMEOUT_S)
