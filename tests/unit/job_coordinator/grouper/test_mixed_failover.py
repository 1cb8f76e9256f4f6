"""The JobModel of mixed containers on YARN: its standbys, and what follows the loss of some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from backup_choices import most_backed
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.mixed_failover import Failover, failed_over
from homeport.job_coordinator.grouper.mixed_standbys import Places, with_mixed_standbys
from homeport.job_coordinator.grouper.previous_assignment import (
    NOTHING,
    PreviousAssignment,
    assigned_by,
)
from homeport.job_coordinator.grouper.validation import first_fault
from homeport.job_coordinator.model.codec import (
    JobModelPieces,
    decode_job_model,
    encode_job_model,
    encode_part,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskMode

IN = SystemStream("kafka", "in")
REQUIRED = "cluster-manager.fault-domain-aware.standby.required"
PREFERRED = "cluster-manager.fault-domain-aware.standby.enabled"
BASE = {
    "job.name": "j",
    "job.default.system": "kafka",
    "job.container.mixed-roles": "true",
    "job.hotstandby.enabled": "true",
    "task.class": "m:C",
    "task.inputs": "kafka.in",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.c",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "string",
}
MIXED = {"Partition 0", "Partition 1"}
A_TO_D = {"0": "a", "1": "b", "2": "c", "3": "d"}


def places_of(hosts: Mapping[str, str], racks: Mapping[str, str] | None = None) -> Places:
    """Containers on these hosts, which are in these racks."""
    found = {ProcessorId(p): Host(host) for p, host in hosts.items()}
    return Places(found, {Host(host): rack for host, rack in (racks or {}).items()})


def model_of(
    places: Places,
    containers: int = 4,
    tasks: int = 8,
    before: PreviousAssignment = NOTHING,
    over: Mapping[str, str] = MappingProxyType({}),
) -> JobModel:
    """The JobModel by the grouper."""
    config = Config({**BASE, "job.container.count": str(containers), **over})
    return calculate_job_model(config, {IN: tasks}, before, places=places)


def ids(*names: str) -> list[ProcessorId]:
    """Containers."""
    return [ProcessorId(name) for name in names]


def actives(model: JobModel) -> dict[str, int]:
    """How many active tasks each container has."""
    count = Counter(model.owners.values())
    return {p: count[p] for p in model.containers}


def sizes(model: JobModel) -> dict[str, int]:
    """How many tasks each container has."""
    return {p: len(container.tasks) for p, container in model.containers.items()}


def require_apart(model: JobModel, places: Places) -> None:
    """Invariant-1, by host and, where the key wants it, by rack."""
    places = places.by(model.config)
    for at in (places.hosts, places.locations()):
        found = Counter(
            (at[p], task.state_of)
            for p, container in model.containers.items()
            if p in at
            for task in container.tasks.values()
        )
        assert set(found.values()) <= {1}
    assert first_fault(model) is None


def test_containers_keep_their_tasks_and_get_standbys_by_their_hosts() -> None:
    """Active tasks are the grouper's; one host never has a task twice, however many containers."""
    places = places_of({"0": "a", "1": "a", "2": "b", "3": "b"})
    model = model_of(places)
    alone = {**BASE, "job.container.count": "4", "job.hotstandby.enabled": "false"}
    plain = calculate_job_model(Config(alone), {IN: 8}, NOTHING)
    assert model.owners == plain.owners
    assert sizes(model) == {"0": 4, "1": 4, "2": 4, "3": 4}
    require_apart(model, places)
    assert {c.role for c in model.containers.values()} == {TaskMode.ACTIVE}


def test_without_mixed_roles_there_are_standby_containers_wherever_containers_run() -> None:
    """Places are of no use."""
    over = {"job.container.mixed-roles": "false"}
    model = model_of(places_of(A_TO_D), over=over)
    assert model == model_of(places_of({}), over=over)
    assert sorted(model.containers) == ["0", "0-0", "1", "1-0", "2", "2-0", "3", "3-0"]


def test_a_container_without_a_host_has_no_standby_and_its_tasks_get_none() -> None:
    """At the first start no host is known. A task that has a standby keeps it while it waits."""
    assert sizes(model_of(places_of({}))) == {"0": 2, "1": 2, "2": 2, "3": 2}
    three = places_of({"0": "a", "1": "b", "2": "c", "9": "e"})
    model = model_of(three)
    assert sizes(model)["3"] == 2
    standbys = assigned_by(model).standbys
    assert {model.owners[task] for task in standbys} == {"0", "1", "2"}
    full = model_of(places_of(A_TO_D))
    again = failed_over(full, [], three).model
    assert assigned_by(again).standbys.keys() == assigned_by(full).standbys.keys()
    assert sizes(again)["3"] == 2
    assert again.containers.keys() == full.containers.keys()
    require_apart(again, three)


def test_racks_are_kept_apart_where_the_key_wants_it() -> None:
    """A host without a rack counts as its own; preferred racks give way to even sizes."""
    hosts = {"0": "a", "1": "b", "2": "c", "3": "d"}
    racks = {"a": "/x", "b": "/x", "c": "/x"}
    places = places_of(hosts, racks)
    model = model_of(places, over={REQUIRED: "true", PREFERRED: "true"})
    require_apart(model, places)
    kept = assigned_by(model).standbys
    assert all((set(kept[t].values()) == {"3"}) is (p != "3") for t, p in model.owners.items())
    assert len(kept) == 8
    even = places_of(hosts, {"a": "/x", "b": "/x", "c": "/y", "d": "/y"})
    soft = model_of(even, over={PREFERRED: "true"})
    rack = {p: even.racks[even.hosts[p]] for p in even.hosts}
    for task, own in assigned_by(soft).standbys.items():
        assert {rack[p] for p in own.values()} != {rack[soft.owners[task]]}
    assert set(sizes(soft).values()) == {4}
    assert set(sizes(model_of(places, over={PREFERRED: "true"})).values()) == {4}


def test_of_standbys_that_may_move_one_goes_that_comes_into_another_rack() -> None:
    """If racks are preferred; else the first one by name."""
    model = model_of(places_of({}), containers=2, tasks=4)
    tasks = {p: container.tasks for p, container in model.containers.items()}
    names = {task: {TaskName(f"Standby-{task}-0"): ProcessorId("2")} for task in model.owners}
    active = {p: ContainerModel(p, tasks[p]) for p in tasks}
    before = PreviousAssignment(standbys=names)
    hosts, racks = {"0": "a", "1": "b", "2": "c", "3": "d"}, {"a": "/x", "b": "/y", "d": "/x"}
    for is_preferred, moved in ((True, {"Partition 1", "Partition 3"}), (False, MIXED)):
        places = replace(places_of(hosts, racks), racks_are_preferred=is_preferred)
        found = with_mixed_standbys(active, places, before, 1)
        came = {t.state_of for t in found[ProcessorId("3")].tasks.values()}
        assert came == moved


def test_lost_tasks_start_where_their_standbys_are_and_nothing_else_moves() -> None:
    """The lost container stays in the model, without tasks; each task has a standby again."""
    before = model_of(places_of(A_TO_D), tasks=12)
    left = places_of(A_TO_D)  # the lost one's host is left out by itself
    found = failed_over(before, ids("3"), left)
    after = found.model
    assert (found.lost, found.unbacked) == (3, 0)
    assert actives(after) == {"0": 4, "1": 4, "2": 4, "3": 0}
    assert sizes(after) == {"0": 8, "1": 8, "2": 8, "3": 0}
    for task, owner in before.owners.items():
        backups = assigned_by(before).standbys[task].values()
        assert after.owners[task] == owner if owner != "3" else after.owners[task] in backups
    require_apart(after, left)
    assert list(after.containers) == list(before.containers)
    back = failed_over(after, [], places_of({**A_TO_D, "3": "e"})).model
    assert actives(back) == actives(after)
    assert sizes(back) == {"0": 6, "1": 6, "2": 6, "3": 6}


def test_where_all_are_lost_nothing_moves() -> None:
    """A container that comes back has the files of its tasks."""
    before = model_of(places_of(A_TO_D))
    every = ids("0", "1", "2", "3")
    assert failed_over(before, every, places_of(A_TO_D)) == Failover(before, 0, 0)
    assert failed_over(before, ids("0"), places_of({})) == Failover(before, 0, 0)


def test_a_task_without_a_backup_goes_to_the_least_loaded_container() -> None:
    """It is counted; a container without a host for now neither loses nor gets one."""
    before = model_of(places_of({}), containers=4, tasks=8)
    found = failed_over(before, ids("0"), places_of({"1": "b", "2": "c"}))
    assert (found.lost, found.unbacked) == (2, 2)
    assert actives(found.model) == {"0": 0, "1": 3, "2": 3, "3": 2}


def test_a_standby_comes_before_even_sizes() -> None:
    """A task that starts without one reads its whole state (STANDBY, part 4)."""
    before = model_of(places_of({"0": "a", "1": "b"}), containers=3, tasks=6)
    places = places_of({"1": "b", "2": "c"})
    found = failed_over(before, ids("0"), places)
    assert (found.lost, found.unbacked) == (2, 0)
    assert actives(found.model) == {"0": 0, "1": 4, "2": 2}
    require_apart(found.model, places)


def test_tasks_without_a_standby_even_the_sizes() -> None:
    """They go to the container with the fewest active tasks, whatever host it is on."""
    owners = {TaskName(f"Partition {n}"): ProcessorId(p) for n, p in enumerate("00112223")}
    known = PreviousAssignment(task_processors=owners)
    bare = model_of(places_of({}), tasks=8, before=known)
    found = failed_over(bare, ids("0"), places_of({"1": "b", "2": "b", "3": "d"}))
    assert (found.lost, found.unbacked) == (2, 2)
    assert actives(found.model) == {"0": 0, "1": 3, "2": 3, "3": 2}


def test_of_two_standbys_the_container_with_fewer_tasks_takes_over() -> None:
    """Also where both have their share already."""
    owners = {TaskName(f"Partition {n}"): ProcessorId(p) for n, p in enumerate("0112223333")}
    known = PreviousAssignment(task_processors=owners)
    over = {"job.hotstandby.replicationcount": "2"}
    before = model_of(places_of({"0": "a", "2": "b", "3": "c"}), tasks=10, before=known, over=over)
    found = failed_over(before, ids("0"), places_of({"1": "d", "2": "b", "3": "c"}))
    assert (found.lost, found.unbacked) == (1, 0)
    assert actives(found.model) == {"0": 0, "1": 2, "2": 4, "3": 4}


def test_a_standby_goes_to_where_the_files_of_its_task_are() -> None:
    """As where a lost host is back; else to the next container."""
    bare = model_of(places_of({}))
    own = [task for task, owner in bare.owners.items() if owner == "0"]
    for files, keeper in ((dict.fromkeys(own, Host("c")), "2"), ({}, "1")):
        found = failed_over(bare, [], places_of(A_TO_D), files).model
        standbys = assigned_by(found).standbys
        assert keeper in {p for task in own for p in standbys[task].values()}
        assert (len({p for task in own for p in standbys[task].values()}) == 1) is bool(files)


def test_a_change_that_a_user_orders_starts_from_where_tasks_are() -> None:
    """The empty container gets its share again, and no other task moves for that.

    The grouper sees a gap in the numbers, and host affinity is off.
    """
    before = model_of(places_of(A_TO_D), tasks=12)
    after = failed_over(before, ids("1"), places_of(A_TO_D)).model
    places = places_of({**A_TO_D, "1": "e"})
    next_one = model_of(places, tasks=12, before=assigned_by(after))
    moved = [t for t, owner in after.owners.items() if next_one.owners[t] != owner]
    assert {next_one.owners[t] for t in moved} == {"1"}
    assert len(moved) == 3
    require_apart(next_one, places)
    more = model_of(places, containers=5, tasks=12, before=assigned_by(next_one))
    moved = [t for t, owner in next_one.owners.items() if more.owners[t] != owner]
    assert len(moved) == 2
    others = PreviousAssignment(task_processors=dict.fromkeys(after.owners, ProcessorId("x")))
    assert model_of(places, tasks=12, before=others).owners == before.owners


def test_a_mixed_container_with_standbys_alone_or_with_nothing_survives_json() -> None:
    """Its role stays that of an active one, also where its standbys are all of one container."""
    before = model_of(places_of({"0": "a", "1": "b"}), containers=2, tasks=2)
    after = failed_over(before, ids("1"), places_of({"0": "a"})).model
    assert sizes(after) == {"0": 2, "1": 0}
    back = failed_over(after, [], places_of({"0": "a", "1": "c"})).model
    for model in (before, after, back):
        read = decode_job_model(encode_job_model(model, mask_secrets=False))
        assert read == model
        assert first_fault(read) is None
    container = back.containers[ProcessorId("1")]
    assert (container.role, container.active_processor) == (TaskMode.ACTIVE, None)
    assert [t.task_mode for t in container.tasks.values()] == [TaskMode.STANDBY] * 2
    text = encode_job_model(after, mask_secrets=False)
    assert b'"1":{"processor-id":"1","tasks":{}}' in text


def test_a_standby_with_other_inputs_than_its_active_task_gets_the_right_ones() -> None:
    """As of a model whose records a tool has changed."""
    before = model_of(places_of(A_TO_D))
    odd = {
        p: replace(
            c,
            tasks={
                n: t if t.task_mode is TaskMode.ACTIVE else replace(t, changelog_partition=70)
                for n, t in c.tasks.items()
            },
        )
        for p, c in before.containers.items()
    }
    assert failed_over(replace(before, containers=odd), [], places_of(A_TO_D)).model == before


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_failovers_and_returns_keep_the_rules(data: st.DataObject) -> None:
    """Through any losses, returns and moves, on hosts and racks of any kind."""
    containers = data.draw(st.integers(2, 5))
    tasks = data.draw(st.integers(containers, 9))
    factor, is_apart = data.draw(st.integers(2, 3)), data.draw(st.booleans())
    over = {
        "job.hotstandby.replicationcount": str(factor - 1),
        REQUIRED: str(data.draw(st.booleans())).lower(),
        PREFERRED: str(data.draw(st.booleans())).lower(),
    }
    racks = {host: data.draw(st.sampled_from(["/x", "/y", "/z"])) for host in "abcd"}
    numbers = [str(n) for n in range(containers)]

    def somewhere() -> Places:
        there = data.draw(st.lists(st.sampled_from(numbers), unique=True))
        hosts = {p: p if is_apart else data.draw(st.sampled_from("abcde")) for p in there}
        return places_of(hosts, racks)

    places = somewhere()
    model = model_of(places, containers, tasks, over=over)
    require_apart(model, places)
    for _ in range(4):
        lost = set(data.draw(st.lists(st.sampled_from(numbers), unique=True)))
        places = somewhere()
        live = [p for p in places.hosts if p not in lost]
        found = failed_over(model, ids(*lost), places)
        after, was = found.model, assigned_by(model).standbys
        assert (first_fault(after), _renewed(model, after)) == (None, [])
        assert after.containers.keys() == model.containers.keys()
        if not live:
            assert after == model
            continue
        require_apart(after, replace(places, hosts={p: places.hosts[p] for p in live}))
        orphans = sorted(t for t, p in model.owners.items() if p in lost)
        assert after.owners == {**model.owners, **{t: after.owners[t] for t in orphans}}
        assert {after.owners[t] for t in orphans} <= set(live)
        shared = [t for t, p in model.owners.items() if p in live or p in lost]
        count, had = actives(after), actives(model)
        most = -(-len(shared) // len(live))
        of = {t: sorted({p for p in was.get(t, {}).values() if p in live}) for t in orphans}
        backed = Counter(after.owners[t] for t in orphans if of[t])
        assert all(after.owners[t] in of[t] for t in orphans if of[t])
        assert all(count[p] - max(had[p], most) <= backed[p] for p in live if count[p] > had[p])
        kept = Counter({p: had[p] for p in live if had[p]})
        beyond = sum(max(0, count[p] - max(had[p], most)) for p in live)
        even = most_backed(orphans, of, kept, live, len(shared))
        assert beyond <= sum(backed.values()) - even
        unbacked = sum(not of[t] for t in orphans)
        assert (found.lost, found.unbacked) == (len(orphans), unbacked)
        total = [size for p, size in sizes(after).items() if p in live]
        if is_apart and over[REQUIRED] == "false" and not _is_lopsided(count, live, after):
            assert max(total) - min(total) <= 1
        assert failed_over(after, ids(*lost), places).model == after
        turned = dict(sorted(places.hosts.items(), reverse=True))
        mixed = replace(model, containers=dict(sorted(model.containers.items(), reverse=True)))
        again = failed_over(mixed, ids(*lost), replace(places, hosts=turned))
        assert again.model.containers == after.containers
        model = after


def _renewed(before: JobModel, after: JobModel) -> list[TaskName]:
    """Equal tasks that are other objects: a comparison of the models takes long for them."""
    known, tasks = before.tasks(), after.tasks()
    return [n for n, t in tasks.items() if known.get(n) == t and known[n] is not t]


def _is_lopsided(count: Mapping[str, int], live: list[ProcessorId], model: JobModel) -> bool:
    """Whether a container has so many active tasks that standbys cannot even that out."""
    whole = sum(len(model.containers[p].tasks) for p in live)
    return max(count[p] for p in live) > -(-whole // len(live))


def test_task_names_of_the_part_are_those_of_the_model() -> None:
    """What a container reads of its part: its standbys, with the names of their active tasks."""
    model = model_of(places_of(A_TO_D), tasks=12)
    own = ProcessorId("2")
    pieces = JobModelPieces.of(model, mask_secrets=False)
    part = decode_job_model(b"".join((*pieces.head, encode_part(model, own), pieces.end)))
    assert part.containers[own] == model.containers[own]
    owners = {model.owners[task.state_of] for task in model.containers[own].tasks.values()}
    assert part.containers.keys() == owners


@pytest.mark.parametrize("count", [1, 2])
def test_as_many_replicas_as_places(count: int) -> None:
    """Replicas beyond the hosts are left out."""
    over = {"job.hotstandby.replicationcount": str(count)}
    model = model_of(places_of({"0": "a", "1": "b"}), containers=2, tasks=4, over=over)
    assert sizes(model) == {"0": 4, "1": 4}
