"""GroupByContainerIds; G11 to G16 are Samza's TestGroupByContainerIds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.grouper.task_name_grouper import GroupByContainerIds, TaskLocality
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStream, TaskModel

Processors = Mapping[ProcessorId, Host | None]
Known = Mapping[TaskName, TaskLocality]


def _processors(hosts: Mapping[str, str | None]) -> dict[ProcessorId, Host | None]:
    return {ProcessorId(p): Host(h) if h else None for p, h in hosts.items()}


def _known(places: Mapping[str, tuple[str | None, str | None]]) -> dict[TaskName, TaskLocality]:
    return {
        TaskName(t): TaskLocality(ProcessorId(p) if p else None, Host(h) if h else None)
        for t, (p, h) in places.items()
    }


def _group(
    names: Iterable[str], known: Known, processors: Processors
) -> dict[ProcessorId, list[TaskName]]:
    models = [TaskModel(TaskName(name), (), 0) for name in names]
    answer = GroupByContainerIds(Config()).group(models, known, processors)
    return {p: sorted(group) for p, group in answer.items()}


def test_g13_without_ids_they_are_counted() -> None:
    """G13: no ids given: 0 to count - 1; an empty list of them, or no task, is refused."""
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "kafka",
            "task.inputs": "kafka.a",
            "job.container.count": "3",
            "task.name.grouper.factory": "group-by-container-ids",
        }
    )
    counts = {SystemStream("kafka", "a"): 4}
    model = calculate_job_model(config, counts, NOTHING)
    assert {p: list(c.tasks) for p, c in model.containers.items()} == {
        "0": ["Partition 0", "Partition 3"],
        "1": ["Partition 1"],
        "2": ["Partition 2"],
    }
    with pytest.raises(ConfigError, match=r"job\.container\.count = '0'"):
        calculate_job_model(config, counts, NOTHING, [])
    with pytest.raises(ConfigError, match=r"task\.inputs"):
        _group("", {}, _processors({"0": None}))


def test_g14_tasks_go_where_they_ran() -> None:
    """G14: P1@L1, P2@L2, P3@L3; T1@L1, T2@L2, T3@L3: each task at its location."""
    processors = _processors({"P3": "L3", "P1": "L1", "P2": "L2"})
    known = _known({"T1": (None, "L1"), "T2": (None, "L2"), "T3": (None, "L3")})
    assert _group(["T1", "T2", "T3"], known, processors) == {
        "P1": ["T1"],
        "P2": ["T2"],
        "P3": ["T3"],
    }


def test_g15_a_container_that_stays_keeps_its_tasks() -> None:
    """G15: of those P3 leaves: P1 gets T3 besides T1, P2 has T2."""
    known = _known({"T1": ("P1", "L1"), "T2": ("P2", "L2"), "T3": ("P3", "L3")})
    answer = _group(["T1", "T2", "T3"], known, _processors({"P1": "L1", "P2": "L2"}))
    assert answer == {"P1": ["T1", "T3"], "P2": ["T2"]}


def test_g16_no_task_locality_and_no_processor() -> None:
    """G16: nothing known of the tasks: one each; no processor at all is refused."""
    processors = _processors({"P1": "L1", "P2": "L2", "P3": "L3"})
    answer = _group(["T1", "T2", "T3"], {}, processors)
    assert answer == {"P1": ["T1"], "P2": ["T2"], "P3": ["T3"]}
    with pytest.raises(ConfigError, match=r"job\.container\.count = '0'"):
        _group(["T1"], _known({"T1": ("P1", "L1")}), {})


def test_the_own_processor_comes_before_others_on_its_host() -> None:
    """P1 and P2 share a host: each has its own tasks again, which Samza leaves to chance."""
    processors = _processors({"P1": "L", "P2": "L"})
    known = _known({"a": ("P2", "L"), "b": ("P1", "L"), "c": ("P2", "L"), "d": ("P1", "L")})
    assert _group("abcd", known, processors) == {"P1": ["b", "d"], "P2": ["a", "c"]}


def test_the_host_comes_before_any_other() -> None:
    """HA-STANDALONE: P1 and P2 on H1, P3 and P4 on H3; P1 dies: its tasks go to P2."""
    processors = _processors({"P4": "H3", "P3": "H3", "P2": "H1"})
    known = _known({"a": ("P1", "H1"), "b": ("P2", "H1"), "c": ("P3", "H3"), "d": ("P4", "H3")})
    assert _group("abcd", known, processors) == {"P2": ["a", "b"], "P3": ["c"], "P4": ["d"]}


# ------------------------------------------------------------- a second, naive way, and properties

_TASKS = st.integers(1, 9).map(lambda n: [f"t{i}" for i in range(n)])
_IDS = ["p-0", "p-1", "ü 2", "'3'", "44"]
_HOSTS = st.sampled_from(["h1", "h2", "h3", None])


def _own(processor_id: ProcessorId, host: Host | None, places: Known) -> list[TaskName]:
    own = [name for name, place in places.items() if place.processor_id == processor_id]
    return sorted(own, key=lambda name: (places[name].host != host, name))


def _naive(
    given_names: Sequence[str], known: Known, processors: Processors
) -> dict[ProcessorId, list[TaskName]]:
    """One task after another: own processor, own host, any; with room at the common size first."""
    names = sorted({TaskName(name) for name in given_names})
    places = {name: known.get(name, TaskLocality()) for name in names}
    hosts = {place.host for place in places.values() if place.host}
    had = {place.processor_id for place in places.values()}
    ranked = sorted(processors, key=lambda p: (p not in had, processors[p] not in hosts, p))
    chosen = [p for p in processors if p in ranked[: len(names)]]
    if all(place == TaskLocality() for place in places.values()):
        return {p: names[i :: len(chosen)] for i, p in enumerate(chosen)}
    chosen.sort()
    share, extra = divmod(len(names), len(chosen))
    own = {p: _own(p, processors[p], places) for p in chosen}
    answer: dict[ProcessorId, list[TaskName]] = {}
    for p in chosen:
        larger = extra > 0 and len(own[p]) > share
        answer[p] = own[p][: share + larger]
        extra -= larger
    for only_own_host in (True, False):
        for name in sorted(set(names) - {n for group in answer.values() for n in group}):
            fits = [
                p
                for p in chosen
                if not only_own_host or (places[name].host and processors[p] == places[name].host)
            ]
            small = [p for p in fits if len(answer[p]) < share]
            even = [p for p in fits if len(answer[p]) == share and extra > 0]
            if small:
                answer[small[0]].append(name)
            elif even:
                answer[even[0]].append(name)
                extra -= 1
    return {p: sorted(group) for p, group in answer.items()}


@st.composite
def _cases(draw: st.DrawFn) -> tuple[list[str], Known, Processors]:
    names = draw(_TASKS)
    ids = draw(st.lists(st.sampled_from(_IDS), min_size=1, max_size=5, unique=True))
    owners = st.sampled_from([*_IDS, None])
    places = {n: (draw(owners), draw(_HOSTS)) for n in draw(st.permutations([*names, "gone"]))}
    for name in draw(st.lists(st.sampled_from(names), max_size=3)):
        places.pop(name, None)
    return names, _known(places), _processors({p: draw(_HOSTS) for p in ids})


@settings(deadline=None)  # the machine may be busy
@given(_cases(), st.randoms())
def test_every_answer_is_whole_even_and_that_of_the_naive_way(
    case: tuple[list[str], Known, Processors], random: Random
) -> None:
    """Each task once, sizes within one, the same for any order of what is given, as naively.

    The order of the processors counts only where nothing is known of any task (G11).
    """
    names, known, processors = case
    answer = _group(names, known, processors)
    shuffled, items = list(names), list(known.items())
    random.shuffle(shuffled)
    random.shuffle(items)
    assert _group(shuffled, dict(items), processors) == answer == _naive(names, known, processors)
    if any(known.get(TaskName(name), TaskLocality()) != TaskLocality() for name in names):
        backwards = dict(reversed(list(processors.items())))
        assert _group(names, known, backwards) == answer
    assert sorted(name for group in answer.values() for name in group) == sorted(names)
    sizes = sorted(len(group) for group in answer.values())
    assert sizes[0] >= 1
    assert sizes[-1] - sizes[0] <= 1
    assert answer.keys() <= processors.keys()


@settings(deadline=None)  # the machine may be busy
@given(_cases())
def test_an_answer_given_back_is_kept(case: tuple[list[str], Known, Processors]) -> None:
    """Grouping what was grouped so before changes nothing, and hosts make no difference to it."""
    names, known, processors = case
    answer = _group(names, known, processors)
    for hosts in (processors, dict.fromkeys(processors)):
        again = {name: TaskLocality(p, hosts[p]) for p, group in answer.items() for name in group}
        assert _group(names, again, processors) == answer


def _kept(answer: Mapping[ProcessorId, Sequence[TaskName]], known: Known) -> int:
    return sum(known[name].processor_id == p for p, group in answer.items() for name in group)


def _even(counts: Sequence[int]) -> bool:
    used = [n for n in counts if n]
    return max(used) - min(used) <= 1 and (len(used) == len(counts) or max(used) == 1)


@settings(deadline=None, max_examples=60)  # the machine may be busy
@given(st.integers(1, 6), st.integers(1, 3), st.data())
def test_no_even_answer_keeps_more_tasks_where_they_were(
    tasks: int, count: int, data: st.DataObject
) -> None:
    """Against every answer there is that is even within one: the bound of the docstring is met."""
    ids = [ProcessorId(p) for p in _IDS[:count]]
    names = [TaskName(f"t{i}") for i in range(tasks)]
    owners = st.sampled_from([*ids, ProcessorId("gone")])
    known = {name: TaskLocality(data.draw(owners), None) for name in names}
    best = 0
    for dealt in product(ids, repeat=tasks):
        if _even([dealt.count(p) for p in ids]):
            kept = sum(known[n].processor_id == p for n, p in zip(names, dealt, strict=True))
            best = max(best, kept)
    assert _kept(_group(names, known, dict.fromkeys(ids)), known) == best


Owners = dict[TaskName, ProcessorId]
GROUPER = GroupByContainerIds(Config({}))


def host_of(processor_id: ProcessorId) -> Host:
    """Three locations, with processors side by side."""
    return Host(f"h{int(processor_id) % 3}")


def grouped(count: int, owners: Owners, there: list[ProcessorId]) -> Owners:
    """The owner of each task, where ``owners`` had them before."""
    tasks = [TaskModel(TaskName(f"t{i:03}"), (), i) for i in range(count)]
    known = {task: TaskLocality(p, host_of(p)) for task, p in owners.items()}
    answer = GROUPER.group(tasks, known, {p: host_of(p) for p in there})
    return {task: p for p, names in answer.items() for task in names}


def moved(before: Owners, after: Owners) -> set[TaskName]:
    """The tasks that have another owner."""
    return {task for task, owner in after.items() if before[task] != owner}


def load(owners: Owners, processor_id: ProcessorId) -> int:
    """How many tasks a processor has."""
    return list(owners.values()).count(processor_id)


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(2, 8), st.data())
def test_a_rolling_restart_of_all_moves_little(
    task_count: int, size: int, data: st.DataObject
) -> None:
    """HA-STANDALONE: "minimal partition movements during rolling upgrade".

    Each processor leaves and comes back in turn. When it leaves, only its own tasks move; when it
    comes back, at most as many as it gets. So a restart moves at most 2 ceil(T / P) tasks, and the
    rolling restart of all at most 2 P ceil(T / P) <= 2 (T + P). One that is back within the
    debounce time never leaves, and nothing moves.
    """
    there = [ProcessorId(str(i)) for i in range(size)]
    owners = grouped(task_count, {}, there)
    assert grouped(task_count, owners, there) == owners
    largest = -(-task_count // size)
    total = 0
    for leaving in data.draw(st.permutations(there)):
        without = grouped(task_count, owners, [p for p in there if p != leaving])
        own = {task for task, owner in owners.items() if owner == leaving}
        assert moved(owners, without) == own
        back = grouped(task_count, without, there)
        assert len(moved(without, back)) <= largest
        total += len(own) + len(moved(without, back))
        owners = back
    assert total <= 2 * size * largest <= 2 * (task_count + size)


@settings(max_examples=60)
@given(st.integers(1, 60), st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=2, max_size=8))
def test_any_sequence_of_processors_moves_no_more_than_it_must(
    task_count: int, sequence: list[set[int]]
) -> None:
    """Even within one; of the processors that stay, exactly as many tasks leave as must."""
    owners: Owners = {}
    for numbers in sequence:
        there = [ProcessorId(str(i)) for i in sorted(numbers)]
        after = grouped(task_count, owners, there)
        if len(there) <= task_count:
            share, larger = divmod(task_count, len(there))
            sizes = {load(after, p) for p in there}
            assert sizes <= {share, share + 1}
            if owners:
                had = [load(owners, p) for p in there]
                over = sum(max(0, n - share) for n in had)
                must = over - min(larger, sum(n > share for n in had))
                left = {t for t in moved(owners, after) if owners[t] in there}
                assert len(left) == must
        owners = after
