"""``homeport clean``: removes the state that a job left behind on this host."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath

from homeport.cli.formatting import number
from homeport.cli.host.deleted_state import DeletedState
from homeport.cli.host.host_clean import HostClean
from homeport.cli.host.job_on_host import (
    Bases,
    HostName,
    bases_of,
    host_named,
    job_folders_of,
    note_places,
    place_named,
    recorded_job,
)
from homeport.cli.host.sweep import Sweep
from homeport.cli.job.job_view import TIMEOUT_S, has_stream, stream_place
from homeport.cli.options import AsJson, Named, described, new_app, note, print_item
from homeport.config.config import Config
from homeport.config.declarations.standalone_keys import ZOOKEEPER
from homeport.config.errors import ConfigError, StoreError, UnavailableError
from homeport.config.settings.sections import JobConfig
from homeport.config.settings.standalone_section import coordinator_of, require_no_migration
from homeport.container.progress.host_directories import HostRole, Owner, duration_ms
from homeport.container.storage.cleaner import Limit, judge_by
from homeport.container.storage.host_survey import folders_in
from homeport.job_coordinator.kafka.deleted_jobs import DeletedJobs
from homeport.job_coordinator.model.ids import Host

app = new_app()


@app.command()
@described(
    apply="Remove; without it, only say what would be removed.",
    older_than="Age of the newest file: 7d, 12h, 30m or 90s.",
    all_jobs="Look at the folders of all jobs on this host; the file needs no job.name.",
    orphans="With --all-jobs: also remove what no record of Kafka, YARN and ZooKeeper knows.",
)
def clean(
    *,
    named: Named,
    apply: bool = False,
    older_than: str = "7d",
    all_jobs: bool = False,
    orphans: bool = False,
    base: Bases = None,
    host: HostName = None,
    as_json: AsJson = False,
) -> None:
    """Removes what a job left on this host and does not need there, once it has grown old.

    Kept, whatever its age: what a process has open, and the directories of tasks whose locality is
    this host, as active or as standby. Removed: stores of tasks that last ran elsewhere, of tasks
    and stores that the job no longer has, and checkpoint directories of Samza's. Whether a store
    has an OFFSET makes no difference: its age is that of its newest file. Each directory is judged
    again, and removed, under its lock. Of a job that homeport delete-job has ended, all goes whose
    own file names a topic of the job. A line names what cannot be removed, and the rest goes on;
    exit code 1. Freed bytes are what the disk gets back.

    Other jobs' directories are not looked at, but with --all-jobs: then each folder below --base is
    judged by the coordinator stream of its job, in the Kafka of the file, or by the record that
    the job was deleted. What neither knows is kept, as may be another Kafka's; --orphans removes of
    it what is old, names a log that is gone, and is of no application of YARN, where
    HADOOP_CONF_DIR names one, and of no tree of ZooKeeper, where the file names one.
    """
    limit_ms = duration_ms(older_than)
    if limit_ms is None:
        rule = "it must be a whole number with a unit: s, m, h or d"
        raise ConfigError("--older-than", older_than, rule, "such as 7d")
    if orphans and not all_jobs:
        raise ConfigError("--orphans", None, "it is for all jobs of a host", "give --all-jobs too")
    config, limit = named.config(), Limit(limit_ms, time.time_ns() // 1_000_000)
    if all_jobs:
        run = HostClean(config, host, limit, is_applied=apply, has_orphans=orphans)
        _clean_all(run, bases_of(base), as_json=as_json)
        return
    if not has_stream(config):
        _clean_deleted(config, host, base, limit_ms, is_applied=apply, as_json=as_json)
        return
    with recorded_job(config) as job, job.tree() as nodes:
        require_no_migration(job.view.recorded_config())
        name, folders = place_named(job, host, base)
        if host is None:
            _require_known(job.owners(name, nodes), name)
        judges = partial(judge_by, partial(job.owners, name, nodes), limit)
        sweep = Sweep(job.job.directory_name, judges, limit, is_applied=apply)
        for found in chain.from_iterable(sweep.outcomes(folder.path) for folder in folders):
            print_item(found, as_json=as_json)
        _summarise([sweep])


def _clean_all(run: HostClean, bases: Sequence[Path], *, as_json: bool) -> None:
    for folder in bases:
        if not folders_in(folder):
            note(f"note: {folder} has no folder of a job")
        for outcome in run.outcomes(folder):
            print_item(outcome, as_json=as_json)
    _summarise(run.sweeps)


def _clean_deleted(
    config: Config,
    host: str | None,
    base: list[Path] | None,
    limit_ms: int,
    *,
    is_applied: bool,
    as_json: bool,
) -> None:
    """Remove what is here of a job that homeport delete-job has ended; ConfigError: none has."""
    job, records = JobConfig.of(config), DeletedJobs(config, TIMEOUT_S)
    deleted = records.read().get(job.directory_name)
    if deleted is None:
        stream_place(config)
        raise UnavailableError("the job was made while this command looked for it: run it again")
    name = host_named(config, host, standalone=coordinator_of(config) == ZOOKEEPER)
    folders = job_folders_of(job, base)
    note_places("the record that the job was deleted", name, folders)
    state = DeletedState(deleted, folders, is_applied=is_applied, limit_ms=limit_ms)
    for outcome in state.outcomes():
        print_item(outcome, as_json=as_json)
    if is_applied and state.is_whole:
        records.cleaned(job.directory_name, name)
    _summarise(state.sweeps)


def _summarise(sweeps: Sequence[Sweep]) -> None:
    for sweep in sweeps:
        for line in sweep.summary():
            note(line)
    if faults := sum(sweep.faults for sweep in sweeps):
        raise StoreError(f"{number(faults, 'directory', 'directories')} not removed; see above")


def _require_known(owners: Mapping[PurePosixPath, Owner], host: Host) -> None:
    """Require that something of the job is at home there: else all would seem left behind."""
    roles = {owner.role for owner in owners.values()}
    if owners and roles == {HostRole.ELSEWHERE}:
        raise ConfigError(
            "--host",
            host,
            "no task of the job has its locality on a host of that name, which is this machine's "
            "own for itself",
            "say by --host what YARN, or job.location-id, calls it, or that it is this one all the "
            "same",
        )
