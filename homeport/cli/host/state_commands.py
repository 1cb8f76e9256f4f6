"""``homeport state``: ls, dump, verify, restore."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path

import typer

from homeport.cli.formatting import number
from homeport.cli.host import state_adjuncts, state_dump, state_list, state_restore, state_verify
from homeport.cli.host.job_on_host import (
    Bases,
    HostName,
    OneStore,
    OneTask,
    OpenRecordedJob,
    job_folders_of,
    place_named,
    recorded_job,
)
from homeport.cli.host.state_verify import Answer
from homeport.cli.options import AsJson, Given, described, new_app, note, note_origin, print_item
from homeport.config.config import INT_MAX
from homeport.config.errors import ConfigError, StoreError
from homeport.config.settings.sections import JobConfig
from homeport.config.settings.stores_section import StorageConfig, StoreConfig
from homeport.container.engine.storage_engine import StoreView
from homeport.container.progress.host_directories import task_directory
from homeport.container.storage.adjunct.store_look import VisibleView, is_adjunct
from homeport.container.storage.directory import DirectoryFiles
from homeport.container.storage.storage_engines import persistent_engine
from homeport.job_coordinator.model.ids import TaskName

app = new_app("Looks at the state that a job has on this host; no running container is disturbed.")


@app.command("ls", short_help="list the state directories of this host, and what is in them")
def ls(
    *, job: OpenRecordedJob, base: Bases = None, host: HostName = None, as_json: AsJson = False
) -> None:
    """Prints every store directory that the job has on this host, and other jobs' in short.

    Of each: its task, its role here, size and files, OFFSET, the position that the store itself
    names, the changelog's head and how many offsets behind, when it last stood there, which process
    has it open, and whether a start would use it, or why not; of an adjunct store its stream, the
    positions in it, how many offsets behind, records and version. What a running container has not
    flushed is not seen. --json: one object per directory.
    """
    name, folders = place_named(job, host, base)
    for item in state_list.items(job, folders, name):
        print_item(item, as_json=as_json)


@app.command("dump", short_help="print what a store holds, key by key")
@described(
    store=typer.Argument(metavar="STORE", help="The store's name."),
    task=typer.Argument(
        metavar="TASK",
        help="The task's name, such as 'Partition 0'; of a store that a container has whole, "
        "'container-' and its processor.",
    ),
    directory=typer.Option(
        "--dir", help="The store's own directory, such as a copy, in place of TASK."
    ),
    key="The pair of this key alone.",
    prefix="Keys whose bytes begin with this text.",
    is_hex=typer.Option("--hex", help="--key and --prefix are bytes in hexadecimal digits."),
    limit=typer.Option("--limit", min=1, max=INT_MAX, help="So many at most."),
)
def dump(  # noqa: PLR0913 - each is an option of the command line
    *,
    store: str,
    task: str | None = None,
    given: Given,
    base: Bases = None,
    directory: Path | None = None,
    key: str | None = None,
    prefix: str | None = None,
    is_hex: bool = False,
    limit: int | None = None,
    as_json: AsJson = False,
) -> None:
    """Prints keys and values of one store of one task, in the order of the keys' bytes.

    They are read with the store's serdes, own ones from PYTHONPATH, from what is flushed on the
    disk, while a container may have it open; nothing is written there, and Kafka is not asked.
    Bytes that are no text are printed as 0x and hexadecimal digits. --json: one object per pair,
    bytes as {"bytes": base64}.
    """
    found = _store(StorageConfig.of(given).stores, store)
    path = directory or _only_path(JobConfig.of(given), base, store, task)
    serdes = state_dump.serdes_of_files(found, DirectoryFiles(path))
    query = state_dump.Query.of(serdes[0], key, prefix, is_hex=is_hex)
    with closing(_view(path, found)) as view:
        for line in state_dump.lines(view, serdes, query, limit, as_json=as_json):
            print(line)


def _view(path: Path, store: StoreConfig) -> StoreView:
    if is_adjunct(path):
        filled = VisibleView(path, store.factory)
        at = ", ".join(f"{ssp} {part.next}" for ssp, part in sorted(filled.parts.items()))
        note_origin(f"{path}, flushed up to {at or 'no partition'}")
        return filled
    view = persistent_engine(store.factory).view(path)
    note_origin(f"{path}, flushed up to changelog offset {view.position}")
    return view


def _store(stores: Mapping[str, StoreConfig], name: str) -> StoreConfig:
    if name not in stores:
        rule = f"the job's stores are: {', '.join(stores) or 'none'}"
        raise ConfigError("STORE", name, rule, "name one of these")
    return stores[name]


def _only_path(job: JobConfig, bases: list[Path] | None, store: str, task: str | None) -> Path:
    if task is None:
        raise ConfigError("TASK", None, "a store is one of a task", "name it, or use --dir")
    folders = [folder.path for folder in job_folders_of(job, bases)]
    name = task_directory(store, TaskName(task))
    paths = [folder / name for folder in folders if (folder / name).is_dir()]
    if not paths:
        where = ", ".join(str(folder) for folder in folders)
        rule = f"there is no directory {name} below {where}"
        raise ConfigError("TASK", task, rule, "homeport state ls lists what is there")
    if len(paths) > 1:
        rule = f"it has several directories: {', '.join(str(path) for path in paths)}"
        raise ConfigError("TASK", task, rule, "name one with --dir")
    return paths[0]


@app.command("verify", short_help="compare stores with their changelogs, or with other directories")
@described(
    against=(
        "Compare with the directories of this base instead, such as another host's; may "
        "be given many times."
    )
)
def verify(
    *,
    given: Given,
    base: Bases = None,
    store: OneStore = None,
    task: OneTask = None,
    against: list[Path] | None = None,
    as_json: AsJson = False,
) -> None:
    """Compares every store directory of this host with its changelog, key by key.

    The changelog is replayed up to the store's position; keys that were written again since, and
    whose older record is compacted away, are counted as not decided. An adjunct store is compared
    with its stream in the same way, by the job's own extractor from PYTHONPATH where it has one;
    not decided is also a key that two partitions have, and, without samza.bootstrap, one that the
    store need not have read. With --against it is two
    directories of one store and task, such as a standby's and its active's; then Kafka is not
    asked. Exit code 1 where one differs, or could not be compared; the first keys are named.
    Digests of the keys go to $TMPDIR: some 40 bytes a key, and the key.
    """
    own = JobConfig.of(given)
    if against:
        wanted = state_verify.Wanted(store, task)
        folders = job_folders_of(own, base)
        others = job_folders_of(own, against, "--against")
        _print_answers(state_verify.with_directories(folders, others, wanted), as_json=as_json)
        return
    with recorded_job(given) as job:
        folders = job_folders_of(job.job, base)
        stores = job.chosen_stores(store, has_adjuncts=True)
        logged = state_verify.with_changelogs(job, folders, stores, job.chosen_tasks(task))
        filled = state_adjuncts.with_streams(job, folders, store, task)
        _print_answers(chain(logged, filled), as_json=as_json)


def _print_answers(answers: Iterable[Answer], *, as_json: bool) -> None:
    count, unequal = 0, 0
    for answer in answers:
        count += 1
        unequal += not answer.is_equal
        print_item(answer, as_json=as_json)
    if not count:
        raise StoreError("no such directory was found: nothing was compared; see homeport state ls")
    if unequal:
        raise StoreError(f"{unequal} of {number(count, 'directory', 'directories')} not equal")
    note(f"{number(count, 'directory', 'directories')} equal")


@app.command("restore", short_help="make store directories from the changelogs, in a folder apart")
@described(to="Folder to make them in: new, or that of such a restore.")
def restore(
    *, to: Path, job: OpenRecordedJob, store: OneStore = None, task: OneTask = None
) -> None:
    """Restores the job's store directories from its changelogs, below a folder of their own.

    Below it they are named as on a host, with OFFSET and STORE-META: homeport state dump and
    verify read them there with --base, and a container would use them. Run again, a store that was
    finished is only brought up to date, one that was not goes on, or begins from the start and says
    why. The job may run meanwhile.
    """
    stores, tasks = job.chosen_stores(store), job.chosen_tasks(task)
    if state_restore.claim(to, job.job):
        note(f"{to} has an earlier restore of this job: going on with it")
    for line in state_restore.restore(job, to, stores, tasks, note):
        print(line, flush=True)
