"""The stores of one container: opened, restored, changed by transactions, committed, closed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from homeport.config.errors import StoreError
from homeport.config.stores_section import StoreConfig
from homeport.container.progress.commit import Changes, StoreId
from homeport.container.progress.directories import task_directory
from homeport.container.storage.changelog_reader import ChangelogReader, RestoreListener
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.engine import StorageEngines
from homeport.container.storage.overlay import Overlay
from homeport.container.storage.restore_manager import RestoreManager
from homeport.container.storage.task_store import (
    Position,
    Reached,
    TaskStore,
    open_task_store,
    passed,
)
from homeport.job_coordinator.http.messages import Restored
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class ContainerStorage:
    """All stores of all tasks of one container.

    ``logged_root`` holds stores with a changelog, ``scratch_root`` those without, which live no
    longer than their container. ``grouper``: the class that made the tasks of the input.
    """

    logged_root: Path
    scratch_root: Path
    stores: Sequence[StoreConfig]
    tasks: Sequence[TaskModel]
    memory_bytes: int
    grouper: str
    wall_ms: Callable[[], int] = _wall_ms
    _opened: list[TaskStore] = field(default_factory=list)
    _by_id: dict[StoreId, TaskStore] = field(default_factory=dict)
    _sending_ms: int = 0

    def open(self) -> None:
        """Every directory is locked and every store that can be opened is open.

        A store that cannot be is marked for a rebuild.

        Raises:
            StoreError: another process holds a directory.
        """
        tasks = len(self.tasks)
        self._engines = StorageEngines(self.memory_bytes, len(self.stores) * tasks, tasks)
        for config in self.stores:
            root = self.scratch_root if config.changelog is None else self.logged_root
            for task in self.tasks:
                directory = StoreDirectory(root / task_directory(config.name, task.state_of))
                self._opened.append(open_task_store(config, task, directory, self._engines))
        self._by_id = {item.id: item for item in self._opened}

    def restore(
        self, reader: ChangelogReader, listener: RestoreListener
    ) -> dict[str, dict[str, Restored]]:
        """Every store holds what its changelog holds, up to its head; {store: {task: how}}.

        OFFSET of each names that head, and STORE-META when it stood there.
        """
        manager = RestoreManager(self._engines, self.grouper, reader, listener)
        results = manager.restore(self.logged, self.wall_ms())
        for store in self._opened:
            if store.engine is None:
                store.engine = self._engines.open(store.config, store.directory.path)
            store.overlay = Overlay(store.engine)
        self.commit()
        return results

    @property
    def logged(self) -> Sequence[TaskStore]:
        """The stores that have a changelog."""
        return [item for item in self._opened if item.config.changelog is not None]

    def overlay(self, store: str, task_name: TaskName) -> Overlay:
        """The overlay of one store of one task; StoreError before ``restore``."""
        item = self._of(StoreId(store, task_name))
        if item.overlay is None:
            raise StoreError(f"store {item.name} is not restored")
        return item.overlay

    def ids(self) -> tuple[list[StoreId], list[StoreId]]:
        """All open stores, and those of them that have a changelog."""
        logged = [item.id for item in self._opened if item.config.changelog is not None]
        return [item.id for item in self._opened], logged

    @property
    def size_bytes(self) -> int:
        """Bytes written to all stores by the open transaction."""
        return sum(item.overlay.size_bytes for item in self._opened if item.overlay)

    def changes(self) -> list[Changes]:
        """What the open transaction changed in stores with a changelog; it is to be sent now."""
        self._sending_ms = self.wall_ms()
        return [changes for item in self._opened if (changes := item.changes()) is not None]

    def apply(self, store: StoreId, positions: Mapping[Position, int]) -> None:
        """The open transaction's changes are in the store; it was committed with these positions.

        Shapes: ``positions`` {(changelog topic, partition): offset of the last record}.
        """
        item = self._of(store)
        # A commit shows that nobody else had written by then, to any of these changelogs.
        item.at_head_ms = self._sending_ms
        item.apply(positions)

    def drop(self) -> None:
        """The open transaction's changes are gone."""
        for item in self._opened:
            if item.overlay is not None:
                item.overlay.clear()

    def has_first_changes(self) -> bool:
        """Whether a store holds something but has no OFFSET yet.

        A crash would have it rebuilt in full, so its first commit is not put off.
        """
        return any(item.has_first_changes for item in self._opened)

    def commit(self, reached: Reached = passed) -> int:
        """Every store that moved is flushed and its OFFSET names where it stood; how many moved."""
        return sum([item.commit(reached) for item in self._opened])

    def _of(self, store: StoreId) -> TaskStore:
        found = self._by_id.get(store)
        if found is None:
            raise StoreError(f"store {store} is not open")
        return found

    def close(self) -> None:
        """Nothing is open or locked; writes of an open transaction are gone."""
        for item in self._opened:
            item.close()
        self._opened.clear()
        self._by_id.clear()
