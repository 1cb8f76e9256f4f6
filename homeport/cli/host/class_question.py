"""The question of run-job to ``check_classes``: which of the job's classes to load, and for what.

It is sent on standard input: options of Spark and of serdes may hold secrets, which no command line
shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.adjunct_section import AdjunctsConfig, extractor_key, streams_of_tasks
from homeport.config.settings.input_serdes import InputSerde, input_serdes
from homeport.config.settings.pipeline_section import PipelineConfig, PipelineKind
from homeport.config.settings.sections import SystemConfig, TaskConfig, repartition_keys
from homeport.config.settings.serde_names import ConfiguredSerde, serde_name
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.settings.used_systems import declared_outputs
from homeport.job_coordinator.metadata.state_facts import StoreForms, StoreSchemas

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

NEW_FORM = "new form of values: "
"""Begins a line of the answer: a store, and the form of the values that the job writes there."""
KeyedSerde = tuple[str, ConfiguredSerde, str]
"""(key, serde, stream); a store's serde has no stream: it is empty."""
StoreQuestion = tuple[str, tuple[ConfiguredSerde, ConfiguredSerde], StoreForms | None]
"""(name, its two serdes, the forms in which its state was written; None: it has no state)."""


RepartitionQuestion = tuple[str, ConfiguredSerde, str, StoreSchemas]
"""(topic, serde of keys, configuration key of that, by what keys were written)."""


class Question(Struct, frozen=True, kw_only=True):
    """Whatever is left out is not checked.

    ``pipeline``: a function, called with ``streams`` and ``adjuncts`` by name. ``java_options``: of
    the job's Spark. ``extractors``: each (key, class). ``manager``: of adjunct stores.
    ``schemas``: {store: by what its values were written}, which a former version does not know.
    ``has_way_back``: whether the code that runs must read what is written to ``stores``.
    ``repartitions``: those that have chosen tasks of keys.
    """

    task_class: str | None = None
    max_concurrency: int = 1
    lateness_ms: int | None = None
    has_pipeline: bool = False
    pipeline: str | None = None
    streams: tuple[str, ...] = ()
    adjuncts: tuple[str, ...] = ()
    java_options: str = ""
    serdes: tuple[KeyedSerde, ...] = ()
    stores: tuple[StoreQuestion, ...] = ()
    schemas: Mapping[str, StoreSchemas] = field(default_factory=dict)
    has_way_back: bool = False
    repartitions: tuple[RepartitionQuestion, ...] = ()
    extractors: tuple[tuple[str, str], ...] = ()
    manager: str | None = None
    inputs: tuple[InputSerde, ...] = ()

    @staticmethod
    def of(
        config: Config, schemas: Mapping[str, StoreSchemas], *, has_way_back: bool = False
    ) -> Question:
        """Return the question about a job; ``schemas``: {changelog: by what it was written}."""
        task, pipeline = TaskConfig.of(config), PipelineConfig.of(config)
        function = None
        if pipeline is not None and pipeline.kind is PipelineKind.FUNCTION:
            function = pipeline.value
        adjuncts = AdjunctsConfig.of(config)
        stores = StorageConfig.of(config).stores.values()
        logged = [store for store in stores if store.changelog is not None]
        found = {store.name: schemas.get(str(store.changelog)) for store in logged}
        known = {name: written for name, written in found.items() if written is not None}
        return Question(
            task_class=task.task_class,
            max_concurrency=keys.TASK_MAX_CONCURRENCY.read(config),
            lateness_ms=keys.TASK_WATERMARK_LATENESS_MS.find(config),
            has_pipeline=pipeline is not None,
            pipeline=function,
            streams=tuple(str(stream) for stream in streams_of_tasks(config)),
            adjuncts=tuple(adjuncts.stores),
            java_options="" if pipeline is None else task.spark_conf.get(_JAVA_OPTIONS, ""),
            serdes=tuple(dict.fromkeys(_serdes(config))),
            stores=tuple(
                (store.name, (store.key_serde, store.msg_serde), _forms(known.get(store.name)))
                for store in logged
            ),
            schemas=known,
            extractors=tuple(
                (extractor_key(config, store.name), store.extractor)
                for store in adjuncts.stores.values()
                if store.extractor is not None
            ),
            manager=adjuncts.manager if adjuncts.stores else None,
            inputs=input_serdes(config),
            has_way_back=has_way_back,
            repartitions=tuple(
                (topic.stream, serde, key, schemas[str(topic)])
                for topic, (key, serde) in repartition_keys(config).items()
                if str(topic) in schemas
            ),
        )


def _forms(written: StoreSchemas | None) -> StoreForms | None:
    return None if written is None else written.forms


def _serdes(config: Config) -> Iterator[KeyedSerde]:
    """Yield (key, serde, stream) of each input and output that has one; stores have no stream."""
    for store in StorageConfig.of(config).stores.values():
        yield keys.STORE_KEY_SERDE.named(store.name), store.key_serde, ""
        yield keys.STORE_MSG_SERDE.named(store.name), store.msg_serde, ""
    streams = (*TaskConfig.of(config).inputs, *(stream for _, stream in declared_outputs(config)))
    for item in dict.fromkeys(streams):
        system, stream = item.system, item.stream
        view = SystemConfig.of(config, system)
        for key, name in (
            (view.key_serde_key(stream), view.key_serde(stream)),
            (view.msg_serde_key(stream), view.msg_serde(stream)),
        ):
            if name is not None:
                yield key, name, stream
    for name in config:
        for of_stream in (keys.STREAM_KEY_SERDE, keys.STREAM_MSG_SERDE):
            parts, value = of_stream.parts_of(name), config.get_str(name)
            if parts is not None and value is not None:
                yield name, serde_name(config, name, value), parts[1]
