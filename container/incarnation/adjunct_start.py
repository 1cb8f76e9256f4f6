"""The adjunct stores of one container and what fills them, made from the job's configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from homeport.config.settings.adjunct_section import AdjunctStore, extractor_key
from homeport.container.adjunct.extractor import ByExtractor, Extraction, OwnKeyAndValue, Serdes
from homeport.container.adjunct.manager import BuiltInManager
from homeport.container.adjunct.store_plan import plan_stores
from homeport.container.classes import load_extractor_factory
from homeport.container.container_job import ContainerJob
from homeport.container.processing.adjunct_feed import AdjunctFeed, RefusedRecords
from homeport.container.processing.records import BadRecords, InputMessages
from homeport.container.processing.task_factory import stream_serdes
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage
from homeport.job_coordinator.model.ids import ProcessorId


def adjunct_storage(
    job: ContainerJob, owner: ProcessorId, roots: tuple[Path, Path], now_ms: Callable[[], int]
) -> AdjunctStorage | None:
    """The adjunct stores of the container ``owner``, none of them open; None: the job has none.

    Args:
        job: the container's view.
        owner: the container; for a standby the active one.
        roots: where stores are that a start may find again, and where others are.
        now_ms: this host's clock.
    """
    if not job.adjuncts:
        return None
    plan = plan_stores(job.adjuncts.values(), job.tasks, owner)
    return AdjunctStorage(plan, job.adjunct_configs, *roots, now_ms)


def adjunct_feed(
    job: ContainerJob, storage: AdjunctStorage | None, bad: BadRecords
) -> AdjunctFeed | None:
    """What fills the stores, which are open; None: the job has none.

    ``bad``: what becomes of records that cannot be stored.

    Raises:
        ConfigError: an extractor or a serde cannot be had.
    """
    if storage is None:
        return None
    refused = RefusedRecords()
    makers = {n: _maker(job, store, refused) for n, store in job.adjuncts.items()}
    managers = {}
    for task in job.tasks:
        name = task.task_name
        managers[name] = BuiltInManager(
            job.adjuncts,
            {n: make() for n, make in makers.items()},
            storage.of_container(),
            storage.of_task(name),
            writes_container_stores=storage.plan.writes_container_stores(name),
        )
    return AdjunctFeed(storage, managers, refused, bad)


def extraction_of(job: ContainerJob, store: AdjunctStore, refused: RefusedRecords) -> Extraction:
    """How entries of the store are made; ConfigError where an extractor or a serde is not there.

    ``refused``: gets the records that cannot be stored.
    """
    return _maker(job, store, refused)()


def _maker(
    job: ContainerJob, store: AdjunctStore, refused: RefusedRecords
) -> Callable[[], Extraction]:
    """Makes one task's extraction. All tasks share the serdes; an extractor is each one's own."""
    stream = store.stream
    serdes = stream_serdes(job, stream.system, stream.stream)
    kept = Serdes(*job.serdes(job.adjunct_configs[store.name]))
    if store.extractor is None:
        own = OwnKeyAndValue(store.name, Serdes(*serdes), kept, refused.met)
        return lambda: own
    factory = load_extractor_factory(extractor_key(job.config, store.name), store.extractor)
    messages = InputMessages(lambda _system, _stream: serdes, refused)

    def make() -> Extraction:
        extractor = factory().get_key_value_extractor(job.config)
        return ByExtractor(store.name, extractor, kept, messages.of)

    return make
