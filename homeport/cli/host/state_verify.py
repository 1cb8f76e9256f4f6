"""What ``homeport state verify`` prints: whether a directory is as its changelog, or another."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from homeport.cli.formatting import number
from homeport.cli.host.job_on_host import JobFolder, RecordedJob, changelog_reader
from homeport.cli.host.state_dump import shown_bytes
from homeport.config.errors import StoreError
from homeport.config.printable import printable_lines
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.progress.host_directories import task_directory
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.changelog_reader import ChangelogReader
from homeport.container.storage.state_comparison import (
    Changelog,
    Comparison,
    compare_stores,
    compare_with_changelogs,
)
from homeport.container.storage.storage_engines import persistent_engine, view_of
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.wire_form import about

_LONGEST = 80
_SCRATCH_BYTES = 64 * 1024 * 1024


class DifferentKey(Struct, frozen=True):
    """One key that differs, for a script."""

    key: Annotated[str, about("in hexadecimal digits")]
    how: Annotated[str, about("how it differs")]


class ShownAnswer(Struct, frozen=True):
    """What came of one directory, for a script."""

    path: Annotated[str, about("of the directory")]
    store: Annotated[str, about("whose state it is")]
    task: Annotated[str, about("the task")]
    against: Annotated[str, about("what it is compared with")]
    position: int | None
    positions: Mapping[str, int] | None
    is_equal: Annotated[bool, about("whether both have the same")]
    compared: Annotated[int, about("keys that were compared")]
    undecided: Annotated[int, about("keys that cannot be judged")]
    different: Annotated[int, about("keys that differ")]
    first: Annotated[Sequence[DifferentKey], about("the first keys that differ")]
    fault: Annotated[str | None, about("why it could not be compared")]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one directory: ``comparison``, or the ``fault`` that was in its way.

    ``positions``: of an adjunct store, {partition: next offset}.
    """

    path: Path
    store: str
    task: str
    against: str
    position: int | None = None
    comparison: Comparison | None = None
    fault: str | None = None
    positions: Mapping[str, int] | None = None

    @property
    def is_equal(self) -> bool:
        """Return whether no key differs, of those that could be judged."""
        return self.comparison is not None and not self.comparison.different

    def shown(self) -> ShownAnswer:
        """Return it for a script."""
        found = self.comparison
        return ShownAnswer(
            path=str(self.path),
            store=self.store,
            task=self.task,
            against=self.against,
            position=self.position,
            positions=self.positions,
            is_equal=self.is_equal,
            compared=found.compared if found else 0,
            undecided=found.undecided if found else 0,
            different=found.different if found else 0,
            first=[DifferentKey(k.hex(), how.value) for k, how in found.first] if found else [],
            fault=self.fault,
        )

    def __str__(self) -> str:
        name = f"{self.store}/{self.task} at {self.path}"
        found = self.comparison
        if found is None:
            return f"{name}: not compared: {self.fault}"
        counted = f"{number(found.compared, 'key')} compared with {self.against}"
        if found.undecided:
            counted += f", {found.undecided} written again since and not decided"
        at = f"position {self.position}"
        if self.positions is not None:
            at = f"positions {', '.join(f'{p}: {o}' for p, o in self.positions.items())}"
        if not found.different:
            return f"{name}, {at}: equal; {counted}"
        story = [f"  {_key(key)}: {how}" for key, how in found.first]
        if found.different > len(story):
            story.append(f"  and {found.different - len(story)} more")
        verdict = f"{name}, {at}: {found.different} DIFFERENT; {counted}"
        return printable_lines([verdict, *story])


def _key(key: bytes) -> str:
    text = shown_bytes(key)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def with_changelogs(
    job: RecordedJob, folders: list[JobFolder], stores: list[StoreConfig], tasks: list[TaskModel]
) -> Iterator[Answer]:
    """Compare each directory that is there with its changelog, up to its own position."""
    with changelog_reader(job) as reader:
        for folder in folders:
            for store in stores:
                for task in tasks:
                    path = folder.path / task_directory(store.name, task.task_name)
                    if path.is_dir():
                        yield _with_changelog(job, path, store, task, reader)


def _with_changelog(
    job: RecordedJob, path: Path, store: StoreConfig, task: TaskModel, reader: ChangelogReader
) -> Answer:
    changelog, partition = store.changelog, task.changelog_partition
    against = f"{changelog} partition {partition}"
    answer = Answer(path, store.name, str(task.task_name), against)
    if changelog is None:
        return replace(answer, fault="the store has no changelog")
    # The store before the changelog: what it has was in the changelog by then.
    try:
        opened = closing(persistent_engine(store.factory).view(path))
        with opened as view, tempfile.TemporaryDirectory(prefix="homeport-") as scratch:
            position = view.position
            (ends,) = reader.ranges([(changelog, partition)])
            if position is None:
                return replace(answer, fault="the store names no changelog position")
            answer = replace(answer, position=position)
            if position >= ends.head:
                fault = f"position {position} is beyond the changelog's end {ends.head}"
                return replace(answer, fault=fault)
            forgets = "delete" in job.cleanup_policy(changelog)
            log = Changelog(changelog, partition, ends, position, forgets)
            memory = RocksDbMemory(_SCRATCH_BYTES, 1)
            with closing(RocksDbStore(Path(scratch), memory)) as digests:
                found = compare_with_changelogs(view.scan(), [log], reader, [digests])
            return replace(answer, comparison=found)
    except StoreError as error:
        return replace(answer, position=None, fault=str(error))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A store's and a task's name, or their directories'; None: all."""

    store: str | None
    task: str | None

    def has(self, path: Path) -> bool:
        """Return whether the directory ``path`` is wanted."""
        if path.parent.name.startswith(".") or path.name.startswith("."):
            return False
        wanted = task_directory(self.store or "any", TaskName(self.task or "any"))
        return (self.store is None or wanted.parent.name == path.parent.name) and (
            self.task is None or wanted.name == path.name
        )


def with_directories(
    folders: list[JobFolder], others: list[JobFolder], wanted: Wanted
) -> Iterator[Answer]:
    """Compare each directory of ``folders`` with that of its store and task in ``others``."""
    for folder in folders:
        for path in sorted(folder.path.glob("*/*")):
            if path.is_dir() and wanted.has(path):
                name = path.relative_to(folder.path)
                yield _pair(path, [other.path / name for other in others])


def _pair(path: Path, candidates: list[Path]) -> Answer:
    other = next((candidate for candidate in candidates if candidate.is_dir()), None)
    where = str(other) if other else ", ".join(str(c) for c in candidates)
    answer = Answer(path, path.parent.name, path.name, where)
    if other is None:
        return replace(answer, fault=f"there is no {where}")
    try:
        with closing(view_of(path)) as mine, closing(view_of(other)) as theirs:
            found = compare_stores(mine.scan(), theirs.scan())
            against = f"{other}, position {theirs.position}"
            return replace(answer, against=against, position=mine.position, comparison=found)
    except StoreError as error:
        return replace(answer, fault=str(error))
