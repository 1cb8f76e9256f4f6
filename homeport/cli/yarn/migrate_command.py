"""``homeport migrate``: a job of YARN's goes on standalone, or the reverse, with its state."""

import os
import uuid
from enum import StrEnum
from functools import partial

from homeport.appmaster.job_model.migration import Migration
from homeport.appmaster.job_model.takeover import outranking
from homeport.appmaster.lease.fencing import fence_all
from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.cli.job.job_view import stream_place
from homeport.cli.options import ConfigPath, Overrides, described, loaded, new_app, note
from homeport.cli.yarn import submission_claim
from homeport.cli.yarn.job import Job
from homeport.cli.yarn.waiting import Waiter
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.standalone_keys import YARN, ZOOKEEPER
from homeport.job_coordinator.zookeeper.handover_nodes import HandoverNodes, handover_nodes

_TIMEOUT_S = 15.0
_CLAIM_LIMIT_S = 30.0


class Where(StrEnum):
    """Where the job is to run next."""

    ZOOKEEPER = ZOOKEEPER
    YARN = YARN


app = new_app()


@app.command(name="migrate")
@described(to="Where the job is to run next.", dry_run="Show the steps, and do none.")
def migrate(
    config_path: ConfigPath, to: Where, config: Overrides = None, *, dry_run: bool = False
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
        steps = Migration(named, store, nodes, partial(fence_all, named)).steps(to.value)
        if not steps:
            print(f"nothing to change: the job runs by {to.value}, or has no state elsewhere")
            return
        if dry_run:
            for number, text in enumerate([_OUTRANK, *(step.text for step in steps)], 1):
                print(f"{number}. {text}")
            return
        number = submission_claim.take_number(
            store,
            uuid.uuid4().hex,
            lambda: Waiter(_CLAIM_LIMIT_S).polls_logging("run-job, or another migration"),
            lambda: job.require_not_running(store),
            partial(submission_claim.fence_command, named),
        )
        carry_out(named, nodes, to, number)
    print(f"the job may run by {to.value} now")


_FACTORY = keys.JOB_COORDINATOR_FACTORY.name
_OUTRANK = "outrank every AM attempt, so that a driver that lives on ends"


def carry_out(config: Config, nodes: HandoverNodes, to: Where, submission: int) -> None:
    """Move the job to where it runs next; ``submission``: the number of this migration.

    Its rank is above all attempts of earlier submissions. A driver that lives on would permit
    numbers that the first version rules out (safety A5). Every record has that rank, so a
    migration that stood still, and was overtaken, changes nothing more: FencedError. After
    another HomeportError what was done may be done again.
    """
    note(_OUTRANK)
    with outranking(config, submission_claim.command_rank(submission)) as stream:
        try:
            submission_claim.require_newest(stream, submission)
            fence = partial(fence_all, config)
            for step in Migration(config, stream, nodes, fence).steps(to.value):
                note(step.text)
                step.do()
        finally:
            submission_claim.withdraw(stream, submission)
