"""``homeport delete-job``: ends a job for good."""

import uuid
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from homeport.cli.formatting import number
from homeport.cli.host.deleted_state import DeletedState, clean_command_of, own_folders_of
from homeport.cli.host.job_on_host import Bases, HostName, host_named
from homeport.cli.job.job_view import TIMEOUT_S, has_stream, is_standalone, stream_place
from homeport.cli.options import AsJson, Named, NamedJob, described, new_app, note, print_item
from homeport.cli.yarn import submission_claim
from homeport.cli.yarn.job import open_stopped
from homeport.cli.yarn.job_deletion import Ended, JobEnd, Outcome, directories, hosts_left
from homeport.cli.yarn.state_reset import taking_over
from homeport.cli.yarn.waiting import Waiter
from homeport.config.config import Config
from homeport.config.errors import HomeportError, UnansweredError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.deleted_jobs import DeletedJob, DeletedJobs
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager

_CLAIM_LIMIT_S = 30.0

app = new_app()


@app.command(name="delete-job")
@described(
    apply="Delete; without it, only say what would be deleted.",
    keep_outputs="Keep the outputs that the job has made.",
)
def delete_job(
    *,
    named: Named,
    apply: bool = False,
    keep_outputs: bool = False,
    base: Bases = None,
    host: HostName = None,
    as_json: AsJson = False,
) -> None:
    """Ends a job for good: deletes what it has in Kafka, ZooKeeper, YARN and on this host.

    A line each, with the reason. Deleted: the checkpoint topic, the changelogs, the outputs that
    the job has made by task.outputs.create.partitions, the nodes in ZooKeeper, files of ended
    applications, the directories of its stores on this host; last the coordinator stream. Kept:
    inputs, outputs that were there before the job, and a topic that another job of that Kafka
    names. Refused while anything of the job runs. A deletion that was cut off is finished by the
    same command, and nothing starts the job meanwhile. On other hosts directories are removed
    there, by the command that the line of the host has, or by homeport clean --all-jobs. Exit code
    3: all is done that can be done from here, and something is left, as its line shows.
    """
    config = named.config()
    command, folders = clean_command_of(named), own_folders_of(JobConfig.of(config), base)
    if not has_stream(config):
        _finish(named, config, _deleted_before(config), base, host, apply=apply, as_json=as_json)
        return
    with open_stopped(config) as (store, job):
        own = host_named(config, host, standalone=is_standalone(config, store))
        end = JobEnd(config, store, job.nodes, job.yarn, own, folders, command, keep_outputs)
        end.require_at_rest()
        if not apply:
            end.look()
            _print(end.plan(), as_json=as_json)
            note("nothing was deleted; --apply deletes")
            return
        _await_stops(end)
        left = _carried_out(store, end, as_json=as_json)
    # Not before: a client that has the topic open could make it again.
    left += _print(end.delete_stream(), as_json=as_json)
    _require_none(left)


def _await_stops(end: JobEnd) -> None:
    """Wait for the stops of containers of an application that YARN has ended, for a while."""
    limit_s = end.stop_limit_s()
    if limit_s is None:
        return
    waiter = Waiter(limit_s)
    for _ in waiter.polls():
        if not (left := end.unstopped()):
            return
        waiter.log_progress(f"{number(len(left), 'container')} may not have stopped yet")
    note("note: no record of the stop of each container; what still runs can commit nothing more")


def _carried_out(store: CoordinatorStreamStore, end: JobEnd, *, as_json: bool) -> int:
    """Delete all but the coordinator stream; return how many things are left."""
    claim = submission_claim.take_number(
        store,
        uuid.uuid4().hex,
        lambda: Waiter(_CLAIM_LIMIT_S).polls_logging("a run-job is submitting this job"),
        end.require_at_rest,
        partial(submission_claim.fence_command, end.config),
    )
    try:
        former = StateResetManager(store).read()
        begun = StateReset(claim, ResetPhase.DELETING)
        with taking_over(end.config, claim, begun) as (stream, _):
            try:
                end.require_at_rest()
                end.fence_standalone()
                end.look()
                end.record()
            except HomeportError:
                StateResetManager(stream).restore(former)
                raise
            newest = partial(submission_claim.require_newest, store, claim)
            left = _print(end.carry_out(newest), as_json=as_json)
    except BaseException:  # Ctrl-C too: a claim that stays holds the next command up
        submission_claim.withdraw(store, claim)
        raise
    if end.is_refused:  # else the stream goes now, and nothing may begin in between
        submission_claim.withdraw(store, claim)
    return left


def _print(ended: Iterable[Ended], *, as_json: bool) -> int:
    """Print each; return how many are left."""
    left = 0
    for item in ended:
        print_item(item, as_json=as_json)
        left += item.outcome is Outcome.LEFT
    return left


def _require_none(left: int) -> None:
    if left:
        raise UnansweredError(
            f"the job is deleted but for {number(left, 'thing')}: see the lines with left"
        )


def _deleted_before(config: Config) -> DeletedJob:
    """Return the record of the job; ConfigError: there was never such a job."""
    folder = JobConfig.of(config).directory_name
    found = DeletedJobs(config, TIMEOUT_S).read().get(folder)
    if found is None:
        stream_place(config)
        raise UnansweredError("the job was made while this command looked for it: run it again")
    return found


def _finish(
    named: NamedJob,
    config: Config,
    deleted: DeletedJob,
    base: list[Path] | None,
    host: str | None,
    *,
    apply: bool,
    as_json: bool,
) -> None:
    """Do what is left of a deletion that has deleted the coordinator stream."""
    note("the job was deleted before")
    folders = own_folders_of(JobConfig.of(config), base)
    state = DeletedState(deleted, folders, is_applied=apply)
    left = _print(directories(state), as_json=as_json)
    own = host_named(config, host, standalone=False)
    done = frozenset({str(own)} if folders and state.is_whole else ())
    left += _print(hosts_left(deleted, done, clean_command_of(named)), as_json=as_json)
    if apply:
        _require_none(left)
