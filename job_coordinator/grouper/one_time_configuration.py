"""What is settled once a job has state: its one-time keys, its tasks and their input partitions.

PURE. Source: COORD, benefit 3: "Changing them in future deployment amounts to resetting the entire
state of the job because it may re-shuffle input partitions to the containers."
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.secret_names import shown_value
from homeport.config.settings.adjunct_section import (
    AdjunctsConfig,
    AdjunctStore,
    all_inputs,
    streams_of_tasks,
)
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.sections import TaskConfig, repartition_keys
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStreamPartition, counts_of

_Stream = tuple[str, str]
_Partitions = frozenset[SystemStreamPartition]

_RESET = "begin from nothing by run-job --reset-state"
_NO_CHANGELOG = "and a task of new inputs alone has no partition of the changelogs"
_FEWER = (
    "give it {} partitions, as many as the job has tasks, or fewer{}; with a grouper "
    f"that makes tasks of each input, broadcast it; or set {keys.JOB_CHANGELOGS_GROW.name}=true, "
    f"and changelogs get partitions for its tasks; or {_RESET}"
)
_MULTIPLE = ", or a multiple"
_NO_READER = "and nothing would read that state any more"
_LEAVE = "leave an input with its partition"
_MAY_GO = (
    f"{_LEAVE}; or set {keys.JOB_CHANGELOGS_GROW.name}=true, and the task goes until an input "
    f"brings it back to its state; or {_RESET}"
)
_NONE_STAYS = "and none of the inputs that made its state would stay"


def has_state(config: Config, before: PreviousAssignment) -> bool:
    """Return whether a job that ran with ``config`` may have left state behind in changelogs."""
    has_changelog = any(keys.STORE_CHANGELOG.matches(name) for name in config)
    return has_changelog and bool(before.changelog_partitions)


def changed_key(running: Config, wanted: Config) -> ConfigError | None:
    """Return the error of the first one-time key, by name, that ``wanted`` changes; None: none."""
    for key in ConfigDiff.between(running, wanted).never_with_state:
        return refusal(key, _shown(running, key), _shown(wanted, key))
    return None


def changed_use(running: Config, wanted: Config) -> ConfigError | None:
    """Return the error of an input that stays, and whose records go elsewhere; None: none.

    Its committed position counts for the former use: a store, or the tasks, would lack what is
    before it. A store with bootstrap lacks nothing: it begins at the oldest record. The bytes of a
    repartition's keys choose the task that has the state of each.
    """
    serdes = dict(repartition_keys(wanted).values())
    for key, serde in repartition_keys(running).values():
        if serdes.get(key, serde) != serde:
            return refusal(key, str(serde), str(serdes[key]), "and chose the task of each key")
    before, after = AdjunctsConfig.of(running), AdjunctsConfig.of(wanted)
    for stream in sorted({*all_inputs(running)} & {*all_inputs(wanted)}):
        old, new = before.of_stream(stream), after.of_stream(stream)
        named = new or old
        if named is None or (old and old.name) == (new and new.name):
            continue
        if new is not None and new.is_bootstrap:
            continue
        return ConfigError(
            named.input_key,
            str(stream) if new else None,
            f"the stream is an input already, and its records go to {_reader(old)}: {_reader(new)} "
            "would lack those before the committed position",
            "run the job without the input, and add it again with its new use in a second change; "
            "or read a copy of it, a topic of another name",
        )
    return None


def require_leaders_use(leaders: Config, own: Config, streams: Collection[SystemStream]) -> None:
    """Require that records of ``streams`` go where the leader's file lets them go.

    A processor computes with its own file, and with the partitions that the leader has given it.
    ConfigError: a stream fills a store by one file alone, or another store.
    """
    theirs, ours = AdjunctsConfig.of(leaders), AdjunctsConfig.of(own)
    for stream in sorted(streams):
        wanted, found = theirs.of_stream(stream), ours.of_stream(stream)
        named = wanted or found
        if named is not None and (wanted and wanted.name) != (found and found.name):
            raise ConfigError(
                named.input_key,
                str(stream) if found else None,
                f"by the file of this processor its records go to {_reader(found)}, by the "
                f"leader's to {_reader(wanted)}",
                "give all processors the same file, then start this one again",
            )


def changed_tasks(before: PreviousAssignment, model: JobModel) -> ConfigError | None:
    """Return the error of the first task that is not as when the state was made; None: none.

    A stream that no task read before is no change, nor is one that none reads any more, as long as
    no task comes or goes, and each keeps an input whose records have made its state. Where
    changelogs may grow, a task of new inputs alone may come. A task may go when the job reads none
    of its inputs any more, and another task stays. It keeps its changelog partition (safety S9) and
    its positions: it goes on from both when it comes back.

    A grown input is no change where its new count is a multiple of the former count n, and each
    new partition p goes to the task of p modulo n, which has had its keys.
    """
    if not before.task_partitions:
        return None  # no record says what the tasks read
    after = {n: frozenset(t.system_stream_partitions) for n, t in model.active_tasks().items()}
    # A task with a processor has had inputs: where no record names one, another task has it now.
    names = sorted({*before.task_partitions, *before.task_processors, *after})
    streams = _Streams(
        counts_of(ssp for ssps in before.task_partitions.values() for ssp in ssps),
        counts_of(ssp for ssps in after.values() for ssp in ssps),
        _makers_of_state(model.config),
        len(before.task_partitions),
        expands=keys.JOB_SSP_INPUT_EXPANSION_ENABLED.read(model.config),
        grows=keys.JOB_CHANGELOGS_GROW.read(model.config),
        stays=any(name in after for name in before.task_partitions),
    )
    for name in names:
        old, new = before.task_partitions.get(name), after.get(name)
        if old is not None and old == new:
            continue
        if streams.grows and streams.may_change(old, new):
            continue
        why = streams.why_other(old, new)
        if why is not None:
            return refusal(keys.TASK_INPUTS.name, _task(name, old), _task(name, new), *why)
    return None


@dataclass(frozen=True)
class _Streams:
    """The inputs of all tasks when the state was made, and now.

    Shapes: ``before``, ``now`` {stream: its partitions}. ``makers``: of ``_makers_of_state``;
    ``tasks``: how many there were; ``expands``: whether a multiple of them has place in them;
    ``grows``: whether changelogs may get partitions; ``stays``: whether any task does.
    """

    before: Mapping[_Stream, int]
    now: Mapping[_Stream, int]
    makers: frozenset[_Stream]
    tasks: int
    expands: bool
    grows: bool
    stays: bool

    def may_change(self, old: _Partitions | None, new: _Partitions | None) -> bool:
        """Return whether a task may come, or go: no key of it is at another one, before or after.

        None: there is, or was, no such task.
        """
        if old is None:
            return new is not None and self._is_apart(new, self.before)
        return new is None and self.stays and self._is_apart(old, self.now)

    def _is_apart(self, ssps: _Partitions, streams: Mapping[_Stream, int]) -> bool:
        """Return whether none of ``streams`` is among ``ssps``, but perhaps broadcast ones."""
        return not any(_stream(ssp) in self.makers for ssp in _of(ssps, streams))

    def why_other(self, old: _Partitions | None, new: _Partitions | None) -> tuple[str, ...] | None:
        """Return why a task is another one, perhaps with a remedy; None: it is the same."""
        if old is None or new is None:
            if new is not None and self._is_apart(new, self.before):
                multiple = _MULTIPLE if self.expands else ""
                return _NO_CHANGELOG, _FEWER.format(self.tasks, multiple)
            if old is not None and self._is_apart(old, self.now):
                return _NO_READER, f"{_LEAVE}, or {_RESET}" if self.grows else _MAY_GO
            return ()
        kept = _of(old, self.now)
        if kept != old and self._is_apart(kept, self.now):
            return _NONE_STAYS, f"add the new input first, take the old one away later, or {_RESET}"
        return None if _is_grown(kept, _of(new, self.before), self.before) else ()


def _makers_of_state(config: Config) -> frozenset[_Stream]:
    """Return the inputs of ``config`` whose records make a task's state, not each task's alike."""
    seen = streams_of_tasks(config)
    own = [stream for stream in TaskConfig.of(config).inputs if stream in seen]
    return frozenset((stream.system, stream.stream) for stream in own or seen)


def require_same_keys(running: Config, wanted: Config, before: PreviousAssignment) -> None:
    """Require that one-time keys stay, where a job with ``running`` has state.

    ConfigError: one means something else in ``wanted``.
    """
    if has_state(running, before):
        fault = changed_key(running, wanted) or changed_use(running, wanted)
        if fault is not None:
            raise fault


def require_same_tasks(config: Config, before: PreviousAssignment, model: JobModel) -> None:
    """Require that ``model`` fits the state that a job with ``config`` has.

    ConfigError: tasks or their input would differ from what the state was made of.
    """
    fault = changed_tasks(before, model) if has_state(config, before) else None
    if fault is not None:
        raise fault


def refusal(
    key: str, old: str, new: str, why: str = "which a change would mix up", remedy: str = ""
) -> ConfigError:
    """Return the error of a key, or of a task's inputs, that may not change with state."""
    rule = f"it was {old!r} when the job's state was made, {why}"
    return ConfigError(key, new, rule, remedy or f"set it back, or {_RESET}")


def _of(ssps: _Partitions, streams: Mapping[_Stream, int]) -> _Partitions:
    return frozenset(ssp for ssp in ssps if _stream(ssp) in streams)


def _stream(ssp: SystemStreamPartition) -> _Stream:
    return ssp.system, ssp.stream


def _is_grown(old: _Partitions, new: _Partitions, counts: Mapping[_Stream, int]) -> bool:
    if not old <= new:
        return False
    for ssp in new - old:
        count = counts[_stream(ssp)]
        if SystemStreamPartition(ssp.system, ssp.stream, ssp.partition % count) not in old:
            return False
    return True


def _shown(config: Config, key: str) -> str:
    return shown_value(key, config.get(key, "its default"))


def _reader(store: AdjunctStore | None) -> str:
    return "the tasks" if store is None else f"store {store.name!r}"


def _task(name: TaskName, ssps: _Partitions | None) -> str:
    if ssps is None:
        return f"no task {name!r}"
    inputs = ", ".join(f"{ssp.system_stream}#{ssp.partition}" for ssp in sorted(ssps))
    return f"task {name!r} of {inputs}"
