"""The stores of one container: opened, restored, changed by transactions, flushed, closed."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.engine.storage_engine import MeasuredEngine
from homeport.container.host.clocks import read_clocks
from homeport.container.progress.clock_reading import NEVER, ClockReading
from homeport.container.progress.host_directories import task_directory
from homeport.container.progress.input_schedule import NONE_STORED, StoredInputs
from homeport.container.progress.transaction_plan import Changes, StoreId
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage
from homeport.container.storage.changelog_reader import RestoreListener, RestoreReader
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import NO_WAIT, Holder, LockWait
from homeport.container.storage.kept_stores import KeptStores
from homeport.container.storage.overlay import Overlay, Written
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.store_restore import RestoreManager, Workers
from homeport.container.storage.task_store import (
    Position,
    Reached,
    StoreFlush,
    TaskStore,
    open_task_store,
    passed,
)
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.figures import FIGURES, Sample

_FLUSHERS = 8
_FEW = 32
"""So many stores are flushed one after the other."""

_Item = TypeVar("_Item")


@dataclass
class ContainerStorage:
    """All stores of all tasks of one container.

    ``logged_root`` holds stores with a changelog, ``scratch_root`` the others, which end with their
    container. ``grouper``: the class that made the tasks of the input. ``wait``: how long this
    container waits for other holders of its directories. ``holder``: this container, for lock
    files. ``adjuncts``: the stores that inputs fill; None: the job has none. ``forms`` {store: the
    forms of its keys and values, in brief}: STORE-META has those that are known before ``restore``.
    ``writers`` {store: the forms of its values, the first container's first}, of several of Avro.
    ``kept``: the stores that may have stayed open since the last run of this process.
    """

    logged_root: Path
    scratch_root: Path
    stores: Sequence[StoreConfig]
    tasks: Sequence[TaskModel]
    memory_bytes: int
    grouper: str
    wait: LockWait = NO_WAIT
    holder: Holder | None = None
    clocks: Callable[[], ClockReading] = read_clocks
    adjuncts: AdjunctStorage | None = None
    forms: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    writers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept: KeptStores = field(default_factory=KeptStores)
    _opened: list[TaskStore] = field(default_factory=list)
    _staying: Collection[TaskName] = ()
    _by_id: dict[StoreId, TaskStore] = field(default_factory=dict)
    _firsts: dict[StoreId, TaskStore] = field(default_factory=dict)
    _written: Written = field(default_factory=Written)
    _sending: ClockReading = NEVER

    def open(self) -> None:
        """Lock every directory, and open every store that can be opened.

        A store that cannot be opened is marked for a rebuild.

        Raises:
            DirectoryHeldError: another process holds a directory, also after the wait.
            DiskError: the disk is full, or may not be used.
            StoreError: two tasks would have one directory, or it cannot be made.
        """
        paths = self._paths()
        self.close_others()
        self._engines = self.kept.engines() or StorageEngines(*self._shares())
        items = [(config, task) for config in self.stores for task in self.tasks]
        found: dict[Path, TaskStore] = {}

        def take_or_open(item: tuple[StoreConfig, TaskModel]) -> bool:
            config, task = item
            path = paths[config.name, task.task_name]
            store = self.kept.take(path, task, self.holder)
            found[path] = store or self._found(config, task, path)
            return True

        try:
            _together(items, take_or_open)
        except BaseException:  # whatever it is: no lock may stay
            for store in found.values():
                store.close()
            raise
        self._opened += [found[paths[c.name, t.task_name]] for c, t in items]
        if self.adjuncts is not None:
            self.adjuncts.open(self._engines, self.wait, self.holder)
        self._by_id = {item.id: item for item in self._opened}
        for item in self._opened:
            item.firsts = self._firsts

    def close_others(self) -> None:
        """Close the stores that have stayed open and are not of this container; StoreError."""
        tasks = {task.task_name: task for task in self.tasks}
        configs = {config.name: config for config in self.stores}
        wanted = {path: (configs[s], tasks[t]) for (s, t), path in self._paths().items()}
        self.kept.retain(wanted, self._shares())

    def _shares(self) -> tuple[int, int, int]:
        tasks = len(self.tasks)
        count = len(self.stores) * tasks + (self.adjuncts.count if self.adjuncts else 0)
        return self.memory_bytes, count, tasks

    def _found(self, config: StoreConfig, task: TaskModel, path: Path) -> TaskStore:
        directory = StoreDirectory(path, self.wait, self.holder, below=path.parents[1])
        try:
            return open_task_store(config, task, directory, self._engines)
        except BaseException:  # whatever it is: the lock must not stay
            directory.release()
            raise

    def _paths(self) -> dict[tuple[str, TaskName], Path]:
        paths: dict[tuple[str, TaskName], Path] = {}
        owners: dict[Path, tuple[str, TaskName]] = {}
        for config in self.stores:
            root = self.scratch_root if config.changelog is None else self.logged_root
            for task in self.tasks:
                own = config.name, task.task_name
                paths[own] = path = root / task_directory(config.name, task.state_of)
                other = owners.setdefault(path, own)
                if other != own:
                    names = " and ".join(f"store {s!r} of task {t!r}" for s, t in (other, own))
                    raise StoreError(f"{path}: {names} would have this one directory: rename one")
        return paths

    def restore(
        self,
        reader: RestoreReader,
        listener: RestoreListener,
        workers: Workers,
        now: ClockReading | None = None,
    ) -> dict[str, dict[str, Restored]]:
        """Bring every store to the head of its changelog; return {store: {task: how}}.

        ``now``: the time before ``reader`` requested the heads; None: it has not yet.

        OFFSET and STORE-META have that, too, unless nothing but markers was read.
        """
        manager = RestoreManager(
            self._engines, self.grouper, reader, listener, workers, forms=self.forms
        )
        results = manager.restore(self.logged, now or self.clocks())
        for store in self._opened:
            if store.engine is None:
                store.engine = self._engines.open(store.config, store.directory.path)
            store.overlay = Overlay(store.engine, self._written)
        of = {item.id: results[item.config.name][item.task.task_name] for item in self.logged}
        _together(self.logged, lambda item: item.flush_restored(of[item.id].records))
        return results

    @property
    def logged(self) -> Sequence[TaskStore]:
        """Return the stores that have a changelog."""
        return [item for item in self._opened if item.config.changelog is not None]

    def overlay(self, store: str, task_name: TaskName) -> Overlay:
        """Return the overlay of one store of one task; StoreError before ``restore``."""
        item = self._of(StoreId(store, task_name))
        if item.overlay is None:
            raise StoreError(f"store {item.name} is not restored")
        return item.overlay

    def ids(self) -> tuple[list[StoreId], list[StoreId]]:
        """Return all open stores, and those of them that have a changelog."""
        return [item.id for item in self._opened], [item.id for item in self.logged]

    @property
    def stored_inputs(self) -> StoredInputs:
        """Return the inputs that fill adjunct stores."""
        return NONE_STORED if self.adjuncts is None else self.adjuncts.inputs

    def figures(self) -> Iterator[Sample]:
        """Return the figures of the open stores."""
        return store_figures(self._opened)

    @property
    def size_bytes(self) -> int:
        """Return the bytes that the open transaction has written to all stores."""
        return self._written.size_bytes

    def positions(self) -> dict[Position, int]:
        """Return {(changelog topic, partition): offset up to which its store holds all, or -1}."""
        return {item.place: -1 if item.position is None else item.position for item in self.logged}

    def changes(self) -> list[Changes]:
        """Return the open transaction's changes to stores with a changelog, to be sent now.

        Later writes belong to the next transaction.

        Raises:
            StoreError: a call of a store has failed, even if user code caught the error.
        """
        self._engines.require_sound()
        self._sending = self.clocks()
        self._written.size_bytes = 0
        sealed = [item for item in self._opened if item.overlay is not None and item.overlay.seal()]
        return [changes for item in sealed if (changes := item.changes()) is not None]

    def apply(self, store: StoreId, positions: Mapping[Position, int]) -> None:
        """Put the sent transaction's changes, committed with these positions, into the store.

        Shapes: ``positions`` {(changelog topic, partition): offset of the last record}.
        """
        item = self._of(store)
        # The commit proves that no other process had written to these changelogs by then.
        item.at_head = self._sending
        item.apply(positions)

    def follow(self, changes: Changes, positions: Mapping[Position, int]) -> None:
        """Put ``changes``, committed with these positions and by no task, into their store."""
        place = changes.changelog.stream, changes.partition
        self._of(changes.store_id).follow(changes.entries, positions[place])

    def drop(self) -> None:
        """Drop the changes of the open transaction, and of one that was sent."""
        for item in self._opened:
            if item.overlay is not None:
                item.overlay.clear()
        self._written.size_bytes = 0

    def first_flushes(self) -> Iterator[StoreFlush]:
        """Yield the flush of each store that holds something and has no OFFSET.

        After a crash it would be restored in full, so its first flush is not put off.
        """
        while self._firsts:
            _, item = self._firsts.popitem()
            if (flush := item.due_flush()) is not None:
                yield flush

    def due_flushes(self) -> Iterator[StoreFlush]:
        """Yield the flush of each store that is due, from what it has when its turn comes."""
        for item in self._opened:
            if (flush := item.due_flush()) is not None:
                yield flush

    def flush_adjuncts(self, reached: Reached = passed, begins: Reached = passed) -> int:
        """Flush the stores that inputs fill, and return how many had moved."""
        return self.adjuncts.flush(reached, begins) if self.adjuncts else 0

    def require_sound(self) -> None:
        """Raise the StoreError of a store that has failed.

        A new OFFSET would hide its damage from the next start.
        """
        self._engines.require_sound()

    def flush(self, reached: Reached = passed, begins: Reached = passed) -> int:
        """Flush every store that moved, write its OFFSET, and return how many moved.

        Raises:
            StoreError: a store has failed.
        """
        self.require_sound()
        own = [item for item in self._opened if not self._stays(item)]
        if self._staying or len(own) > _FEW:
            moved = sum(_together(own, lambda item: item.flush(reached, begins)))
        else:
            moved = sum([item.flush(reached, begins) for item in own])
        return moved + self.flush_adjuncts(reached, begins)

    def stay(self, tasks: Collection[TaskName]) -> None:
        """Have ``close`` keep the stores of ``tasks`` that may stay open, without a flush."""
        self._staying = frozenset(tasks)

    def _stays(self, item: TaskStore) -> bool:
        return item.task.task_name in self._staying and item.may_stay

    def _of(self, store: StoreId) -> TaskStore:
        found = self._by_id.get(store)
        if found is None:
            raise StoreError(f"store {store} is not open")
        return found

    def close(self) -> None:
        """Close and unlock all that does not ``stay``; writes of an open transaction are gone."""
        for item in self._opened:
            if self._stays(item):
                self.kept.put(item, self._engines)
            else:
                item.close()
        self._opened.clear()
        self._by_id.clear()
        if self.adjuncts is not None:
            self.adjuncts.close()


def _together(items: Sequence[_Item], action: Callable[[_Item], bool]) -> list[bool]:
    """Return the results of ``action``, which mostly waits for the disk; tasks wait for all."""
    with ThreadPoolExecutor(_FLUSHERS) as pool:
        return list(pool.map(action, items))


def store_figures(stores: Iterable[TaskStore]) -> Iterator[Sample]:
    """Yield the figures of each store, summed over its tasks, and those that all stores share."""
    sums: Counter[tuple[str, str]] = Counter()
    shared: dict[str, int] = {}
    for store in stores:
        engine: object = store.engine  # of any kind; some are measured
        if isinstance(engine, MeasuredEngine):
            for name, value in engine.figures().items():
                if FIGURES[name].labels:
                    sums[name, store.config.name] += value
                else:
                    shared[name] = value
    for (name, of), value in sums.items():
        yield Sample(name, (of,), value)
    for name, value in shared.items():
        yield Sample(name, (), value)
