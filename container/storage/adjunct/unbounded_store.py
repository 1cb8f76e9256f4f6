"""UnboundedStore: an adjunct store of a data set that has no end, one engine that follows it.

Source: ADJUNCT, "Unbounded dataset".
"""

from collections.abc import Mapping

from homeport.config.errors import StoreError
from homeport.container.adjunct.extractor import Bytes
from homeport.container.adjunct.manager import Intake, Layer
from homeport.container.adjunct.steps import AdjunctAction, AdjunctStep
from homeport.container.adjunct.version_text import PARTS_KEY, parse_parts, parts_text
from homeport.container.adjunct.versions import Progress, Run, VersionProgress
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.refusal import RefusalReason
from homeport.container.storage.adjunct.filled_store import (
    FilledStore,
    Reached,
    RefusedStoreError,
    StoreFacts,
    cannot_follow,
)
from homeport.container.storage.storage_engines import persistent_engine
from homeport.job_coordinator.model.job_model import SystemStreamPartition


class UnboundedStore(FilledStore):
    """A ``FilledStore`` of which tasks see each batch from its turn on."""

    def __post_init__(self, kept_bytes: int) -> None:
        super().__post_init__(kept_bytes)
        self._engine: StorageEngine | None = None
        self._parts: VersionProgress = {}
        self._intake = Intake({})
        self._newest_ms = 0

    def _open_found(self) -> Mapping[SystemStreamPartition, int]:
        fault = persistent_engine(self._config.factory).fault(self._directory.path)
        if fault is not None:
            raise StoreError(fault)
        self._engine = self._engines.open(self._config, self._directory.path)
        text = self._engine.get(PARTS_KEY)
        if text is None:
            reason = RefusalReason.MISSING_POSITION
            raise RefusedStoreError(reason, "it does not say where it is")
        self._parts = parse_parts(text.decode("utf-8", "replace"))
        return self.positions

    def _forget(self) -> None:
        self._parts = {}

    @property
    def positions(self) -> Mapping[SystemStreamPartition, int]:
        """Return the positions, as ``FilledStore``."""
        return {ssp: part.next for ssp, part in self._parts.items()}

    def lost(self, partition: SystemStreamPartition, position: InputPosition) -> None:
        """Raise StoreError: nothing would bring what it lacks."""
        story = f"{position.lost} records were deleted before they were read"
        raise cannot_follow(self.planned.store.name, partition, story)

    def _start(self, starts: Mapping[SystemStreamPartition, InputPosition]) -> None:
        if self._engine is None:
            self._engine = self._engines.open(self._config, self._directory.path)
        parts = {**{ssp: Progress(at.offset) for ssp, at in starts.items()}, **self._parts}
        self._intake = Intake(parts)
        if parts != self._parts or self.was_reset:
            self._write({}, parts)
        self.entries.engine = self._engine

    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        """Take records, as ``FilledStore``."""
        self._intake.take(run, keys, values)
        self._newest_ms = max(self._newest_ms, *run.timestamps)

    def facts(self) -> StoreFacts:
        """Return the facts, as ``FilledStore``."""
        # A record without a time of its own has -1.
        return StoreFacts.of_parts(self._parts, self._size_bytes(), self._newest_ms or None)

    def sealed(self) -> Layer | None:
        """Return the layer, as ``FilledStore``."""
        return self._intake.sealed()

    def write(self, layer: Layer, reached: Reached, begins: Reached) -> None:
        """Write ``layer``, as ``FilledStore``."""
        step = AdjunctStep(AdjunctAction.WRITE, self.name)
        begins(step)
        self._write(layer.entries, layer.parts)
        reached(step)

    def _write(self, entries: Mapping[bytes, bytes | None], parts: VersionProgress) -> None:
        position = parts_text(parts).encode()
        self._opened_engine().write({**entries, PARTS_KEY: position}, None)
        self.entries.changed(entries)
        self._parts, self._has_moved = parts, True

    def _flush_engines(self) -> None:
        self._opened_engine().flush()

    def _opened_engine(self) -> StorageEngine:
        if self._engine is None:
            raise StoreError(f"{self._directory.path}: the store is not open")
        return self._engine

    def _close_engines(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
