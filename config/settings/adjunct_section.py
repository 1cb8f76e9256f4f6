"""Typed views of the job's adjunct stores: stores that an input fills and tasks only read.

PURE. Source: ADJUNCT; Samza's side inputs are another spelling of the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key, TextKey, values_of
from homeport.config.errors import ConfigError
from homeport.config.java_names import Kind, short_name, user_class
from homeport.config.settings.sections import JobConfig, TaskConfig, stream_or_topic
from homeport.config.settings.stores_section import StorageConfig, StoreConfig
from homeport.config.settings.used_systems import broadcast_streams
from homeport.config.system_stream import SystemStream

_ONE_TASK_EACH = "group-by-system-stream-partition"
_OPTIONS: tuple[Key, ...] = (
    keys.STORE_ADSTORE_EXTRACTOR_FACTORY,
    keys.STORE_ADSTORE_VALIDITY_MS,
    keys.STORE_ADSTORE_MARKER_HEADER,
    keys.STORE_ADSTORE_MARKER_KEY,
    keys.STORE_ADSTORE_MINIMUM_SHARE,
    keys.STORE_ADSTORE_LATE_MS,
    keys.STORE_SIDE_INPUTS_PROCESSOR_FACTORY,
)
_EXTRACTORS = (keys.STORE_ADSTORE_EXTRACTOR_FACTORY, keys.STORE_SIDE_INPUTS_PROCESSOR_FACTORY)


@dataclass(frozen=True, slots=True)
class VersionMarkers:
    """How records say that a version of a bounded data set begins or ends in their partition.

    By their ``header``, or by their ``key``; one of both is None.
    """

    header: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class AdjunctStore:
    """One adjunct store.

    ``input_key``: the key that names its stream. ``is_broadcast``: whether each container has it
    whole, else each task has its part. ``is_bootstrap``: whether its stream is read to its end
    before others. ``is_kept``: whether a start uses what it finds of it. ``extractor``:
    ``module:Name`` of its factory; None: the record's own key and value. ``validity_ms``: None:
    files are good at any age. ``markers``: None: the data set has no end, and no versions.
    ``manager``: as of ``AdjunctsConfig``.
    """

    name: str
    stream: SystemStream
    input_key: str
    is_broadcast: bool
    is_bootstrap: bool
    is_kept: bool
    extractor: str | None
    validity_ms: int | None
    markers: VersionMarkers | None
    minimum_share_percent: Annotated[int, keys.STORE_ADSTORE_MINIMUM_SHARE]
    late_ms: Annotated[int, keys.STORE_ADSTORE_LATE_MS]
    manager: str | None = None

    @property
    def made_by(self) -> str | None:
        """Return the class that makes its entries of records; None: the default one."""
        return self.manager or self.extractor

    @property
    def is_bounded(self) -> bool:
        """Return whether its data set comes in versions."""
        return self.markers is not None


@dataclass(frozen=True, slots=True)
class AdjunctsConfig:
    """All adjunct stores by name, in sorted order, and what fills them.

    ``manager``: ``module:Name`` of the manager's factory; None: the built-in one.
    """

    stores: Mapping[str, AdjunctStore]
    manager: str | None = None

    @staticmethod
    def of(config: Config) -> AdjunctsConfig:
        """Return the view of ``config``.

        ConfigError: a store cannot be one, or two have the same stream.
        """
        broadcast = frozenset(broadcast_streams(config))
        found = {
            name: adjunct
            for name, store in StorageConfig.of(config).stores.items()
            if (adjunct := _store(config, store, broadcast)) is not None
        }
        _check_streams(config, found)
        return AdjunctsConfig(found, _class(config, keys.ADSTORE_MANAGER_FACTORY))

    def of_stream(self, stream: SystemStream) -> AdjunctStore | None:
        """Return the store that ``stream`` fills; None: its records are for tasks."""
        return next((store for store in self.stores.values() if store.stream == stream), None)


def all_inputs(config: Config) -> tuple[SystemStream, ...]:
    """Return the inputs of the job, broadcast ones too."""
    return (*TaskConfig.of(config).inputs, *broadcast_streams(config))


def streams_of_tasks(config: Config) -> tuple[SystemStream, ...]:
    """Return the inputs whose records tasks see: all, broadcast ones too, that fill no store."""
    adjuncts = AdjunctsConfig.of(config)
    return tuple(s for s in all_inputs(config) if adjuncts.of_stream(s) is None)


def _store(
    config: Config, store: StoreConfig, broadcast: frozenset[SystemStream]
) -> AdjunctStore | None:
    name = store.name
    named = _input(config, name)
    if named is None:
        return None
    key, stream = named
    if store.changelog is not None:
        rule = f"{key} fills the store, and its stream is all the log that it needs"
        raise keys.STORE_CHANGELOG.error(store.changelog, rule, "remove one of both", name)
    if store.ttl_ms is not None:
        rule = f"{key} fills the store, whose entries live until their stream deletes them"
        raise keys.ROCKSDB_TTL_MS.error(
            config.get_str(keys.ROCKSDB_TTL_MS.named(name)), rule, "remove it", name
        )
    validity_ms = keys.STORE_ADSTORE_VALIDITY_MS.read(config, name)
    return AdjunctStore(
        name=name,
        stream=stream,
        input_key=key,
        is_broadcast=_is_broadcast(config, key, stream, broadcast),
        is_bootstrap=keys.STREAM_BOOTSTRAP.read(config, stream.system, stream.stream),
        is_kept=store.is_persistent and not store.clean_on_start,
        extractor=_extractor(config, name),
        validity_ms=None if validity_ms < 0 else validity_ms,
        markers=_markers(config, name),
        manager=_class(config, keys.ADSTORE_MANAGER_FACTORY),
        **values_of(AdjunctStore, config, name),
    )


def _input(config: Config, name: str) -> tuple[str, SystemStream] | None:
    """Return the key of the store's stream, and the stream; None: no input fills the store."""
    own = keys.STORE_ADSTORE_INPUT.named(name)
    side = keys.STORE_SIDE_INPUTS.named(name)
    text = keys.STORE_ADSTORE_INPUT.read(config, name)
    others = keys.STORE_SIDE_INPUTS.read(config, name)
    if len(others) > 1:
        raise _several_streams(side, config.get_str(side))
    found = None if text is None else _stream(config, own, text)
    other = _stream(config, side, others[0]) if others else None
    if found is not None and other is not None and found != other:
        rule = f"{own} names another stream, {found}, and one stream fills a store"
        raise ConfigError(side, str(other), rule, "remove one of both")
    if found is not None:
        return own, found
    return None if other is None else (side, other)


def _several_streams(key: str, value: str | None) -> ConfigError:
    rule = "one stream fills a store, so that the store is a copy of it"
    return ConfigError(key, value, rule, "give each stream a store of its own")


def _stream(config: Config, key: str, text: str) -> SystemStream:
    if "," in text:
        raise _several_streams(key, text)
    remedy = "write it as in kafka.planes"
    return stream_or_topic(config, key, text, keys.JOB_DEFAULT_SYSTEM, remedy)


def _is_broadcast(
    config: Config, key: str, stream: SystemStream, broadcast: frozenset[SystemStream]
) -> bool:
    is_input = stream in TaskConfig.of(config).inputs
    if is_input and stream in broadcast:
        raise ConfigError(
            key,
            str(stream),
            f"it is in {keys.TASK_INPUTS.name} and in {keys.TASK_BROADCAST_INPUTS.name}, and a "
            "store is either the part of a task or the whole of a container",
            f"remove it from {keys.TASK_INPUTS.name} where every container is to have all of it",
        )
    if not is_input and stream not in broadcast:
        remedy = (
            f"add it to {keys.TASK_INPUTS.name} (each task has the part of its partitions), or its "
            f"partitions to {keys.TASK_BROADCAST_INPUTS.name} (each container has all of it)"
        )
        raise ConfigError(key, str(stream), "it is no input of the job", remedy)
    grouper = short_name(Kind.SSP_GROUPER, JobConfig.of(config).ssp_grouper_factory)
    if is_input and grouper == _ONE_TASK_EACH:
        raise ConfigError(
            key,
            str(stream),
            f"{keys.JOB_SSP_GROUPER_FACTORY.name}={_ONE_TASK_EACH} makes a task of each of its "
            "partitions, and no task that reads another input would have the store",
            f"name its partitions in {keys.TASK_BROADCAST_INPUTS.name}, or use group-by-partition",
        )
    return not is_input


def _extractor(config: Config, name: str) -> str | None:
    own = _class(config, keys.STORE_ADSTORE_EXTRACTOR_FACTORY, name)
    side = _class(config, keys.STORE_SIDE_INPUTS_PROCESSOR_FACTORY, name)
    if own is not None and side is not None and own != side:
        rule = f"{keys.STORE_ADSTORE_EXTRACTOR_FACTORY.named(name)} names another class, {own}"
        raise keys.STORE_SIDE_INPUTS_PROCESSOR_FACTORY.error(side, rule, "remove one of both", name)
    return own or side


def extractor_key(config: Config, name: str) -> str:
    """Return the key by which the configuration names the extractor of the store ``name``."""
    own = keys.STORE_ADSTORE_EXTRACTOR_FACTORY
    is_own = own.is_set(config, name)
    return (own if is_own else keys.STORE_SIDE_INPUTS_PROCESSOR_FACTORY).named(name)


def _class(config: Config, key: TextKey, *parts: str) -> str | None:
    text = key.read(config, *parts)
    if text is None:
        return None
    found = user_class(text)
    if found is None:
        raise key.error(
            text,
            "it must have the form module:Name",
            "write the module, a colon and the class in it, such as my_job.planes:Factory",
            *parts,
        )
    return found


def _markers(config: Config, name: str) -> VersionMarkers | None:
    header = keys.STORE_ADSTORE_MARKER_HEADER.read(config, name)
    key = keys.STORE_ADSTORE_MARKER_KEY.read(config, name)
    if header is not None and key is not None:
        rule = (
            f"{keys.STORE_ADSTORE_MARKER_HEADER.named(name)} is set, and a marker is known by one "
            "of both"
        )
        raise keys.STORE_ADSTORE_MARKER_KEY.error(key, rule, "remove one of both", name)
    return None if header is None and key is None else VersionMarkers(header, key)


def _check_streams(config: Config, stores: Mapping[str, AdjunctStore]) -> None:
    owners: dict[SystemStream, AdjunctStore] = {}
    for store in stores.values():
        other = owners.setdefault(store.stream, store)
        if other is not store:
            rule = f"it fills store {other.name!r} already, and one store keeps a stream"
            remedy = "read that store, or remove it"
            raise ConfigError(store.input_key, str(store.stream), rule, remedy)
    if stores and {*all_inputs(config)} <= set(owners):
        first = next(iter(stores.values()))
        rule = "every input of the job fills a store, and none is left for its tasks"
        remedy = f"add what the tasks are to process to {keys.TASK_INPUTS.name}"
        raise ConfigError(first.input_key, str(first.stream), rule, remedy)


def adjunct_warnings(config: Config, adjuncts: AdjunctsConfig) -> Iterator[str]:
    """Return one line for each key of adjunct stores without effect."""
    for name in StorageConfig.of(config).stores:
        store = adjuncts.stores.get(name)
        for key in _OPTIONS:
            if not key.is_set(config, name):
                continue
            if store is None:
                needed = keys.STORE_ADSTORE_INPUT.named(name)
                yield f"{key.named(name)} has no effect: no input fills the store; set {needed}"
            elif key in (keys.STORE_ADSTORE_MINIMUM_SHARE, keys.STORE_ADSTORE_LATE_MS):
                if not store.is_bounded:
                    yield f"{key.named(name)} has no effect: the store has no version marker"
            elif store.manager is not None and key in _EXTRACTORS:
                made_by = keys.ADSTORE_MANAGER_FACTORY.name
                yield f"{key.named(name)} has no effect: the manager of {made_by} makes the entries"
            elif key is keys.STORE_ADSTORE_VALIDITY_MS and not store.is_kept:
                yield f"{key.named(name)} has no effect: no start uses what it finds of the store"
    if adjuncts.manager is not None and not adjuncts.stores:
        yield f"{keys.ADSTORE_MANAGER_FACTORY.name} has no effect: no input fills a store"
