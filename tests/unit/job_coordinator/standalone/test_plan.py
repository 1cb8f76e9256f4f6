"""Generations and fences from version to version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_models import model_of

from homeport.config.config import Config
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)
from homeport.job_coordinator.standalone.child_model import model_of_child, part_of
from homeport.job_coordinator.standalone.plan import (
    Member,
    Plan,
    Registration,
    Standby,
    next_plan,
    plan_of,
    unreported,
)

P, Q, R = (ProcessorId(name) for name in "pqr")
T, U = TaskName("t"), TaskName("u")


def there(*members: tuple[int, ProcessorId]) -> tuple[Registration, ...]:
    """Registrations of these numbers."""
    return tuple(Registration(number, id_, Host(f"at-{id_}")) for number, id_ in members)


FIRST = next_plan(None, there((1, P), (2, Q)), {P: (T,), Q: (U,)}, {})


def said(plan: Plan) -> dict[str, tuple[int, str, list[str]]]:
    """{processor: generation, tasks, fence}."""
    return {
        m.processor_id: (
            m.generation,
            "".join(m.tasks),
            [f"{i.processor_id}{i.epoch}" for i in m.fence],
        )
        for m in plan.members
    }


def test_a_processor_whose_work_stays_keeps_its_generation() -> None:
    """Z4: the one that gains fences the one that is gone; what it reported is fenced no more."""
    three = next_plan(FIRST, there((1, P), (2, Q), (3, R)), {P: (T,), Q: (U,)}, {})
    assert said(three) == {"p": (1, "t", []), "q": (1, "u", []), "r": (2, "", [])}
    taken = next_plan(three, there((1, P), (3, R)), {P: (T,), R: (U,)}, {P: 1, Q: 1})
    assert said(taken) == {"p": (1, "t", []), "r": (3, "u", ["q1"])}
    later = next_plan(taken, there((1, P), (3, R), (4, Q)), {P: (T,), R: (U,)}, {R: 3})
    assert said(later) == {"p": (1, "t", []), "q": (4, "", []), "r": (3, "u", [])}


def test_what_was_not_fenced_stays_in_the_list_of_the_next_owner() -> None:
    """Safety I1: the predecessor of the predecessor too, until one of them has reported."""
    taken = next_plan(FIRST, there((2, Q)), {Q: (T, U)}, {P: 1, Q: 1})
    assert said(taken) == {"q": (2, "tu", ["p1", "q1"])}
    again = next_plan(taken, there((3, R)), {R: (T, U)}, {})
    assert said(again) == {"r": (3, "tu", ["p1", "q1"])}
    reported = next_plan(taken, there((3, R)), {R: (T, U)}, {Q: 2})
    assert said(reported) == {"r": (3, "tu", ["q2"])}
    stale = next_plan(taken, there((3, R)), {R: (T, U)}, {Q: 1})
    assert said(stale) == said(again)


def test_a_generation_that_stays_keeps_what_it_has_to_fence_until_it_reports() -> None:
    """Safety I1: a version may be the first in force that is not the first with a generation."""
    before = Plan(2, (Member(P, 1, 2, (T,), (Incarnation(R, 1),)),))
    both = there((1, P), (2, Q))
    assert said(next_plan(before, both, {P: (T,)}, {})) == {"p": (2, "t", ["r1"]), "q": (3, "", [])}
    reported = next_plan(before, both, {P: (T,)}, {P: 2})
    assert said(reported) == {"p": (2, "t", []), "q": (3, "", [])}


def test_what_may_write_to_a_task_that_goes_is_listed_when_the_task_comes_back() -> None:
    """Safety I1: a stateless job that reads an input no more, and then again."""
    both = there((1, P), (2, Q))
    without = next_plan(FIRST, both, {P: (T,)}, {P: 1, Q: 1})
    assert said(without) == {"p": (1, "t", []), "q": (2, "", [])}
    assert without.former == (Incarnation(Q, 1),)
    later = next_plan(without, both, {P: (T,)}, {P: 1})
    assert later.former == (Incarnation(Q, 1),)
    back = next_plan(later, there((1, P), (3, R)), {P: (T,), R: (U,)}, {P: 1})
    assert said(back) == {"p": (1, "t", []), "r": (4, "u", ["q1"])}
    assert back.former == (Incarnation(Q, 1),)  # R may never begin, and the task go once more
    assert next_plan(back, there((1, P), (3, R)), {P: (T,), R: (U,)}, {P: 1, R: 4}).former == ()


def test_a_new_session_is_a_new_generation() -> None:
    """Safety C4: the same tasks, and the own earlier incarnation to fence. Z9 in part."""
    again = next_plan(FIRST, there((2, Q), (3, P)), {P: (T,), Q: (U,)}, {P: 1})
    assert said(again) == {"p": (2, "t", ["p1"]), "q": (1, "u", [])}


def test_only_a_task_of_both_models_can_have_changed() -> None:
    """A task that is new has no incarnation to replace."""
    here, first = there((1, P), (2, Q)), model_of({P: (T,), Q: (U,)})
    before = plan_of(None, here, first, {})
    assert plan_of(before, here, first, {}).members == before.members
    assert said(plan_of(before, here, model_of({P: (T,)}, partition=1), {P: 1})) == {
        "p": (2, "t", ["p1"]),
        "q": (2, "", []),
    }
    again = plan_of(before, here, model_of({P: (T,), Q: (U,)}, {P: kept(U)}), {})
    assert [m.generation for m in again.members] == [1, 1]
    assert again.members[0].standbys == kept(U)


def test_a_wrong_assignment_is_refused() -> None:
    """One task with two owners; an owner that is not present."""
    with pytest.raises(InvariantViolation, match="task 't' is assigned to 'p' and to 'q'"):
        next_plan(None, there((1, P), (2, Q)), {P: (T,), Q: (T,)}, {})
    with pytest.raises(InvariantViolation, match="processor 'r' has tasks and is not present"):
        next_plan(None, there((1, P)), {R: (T,)}, {})
    assert said(next_plan(None, there((1, P)), {P: (T,), R: ()}, {})) == {"p": (1, "t", [])}


def kept(task: TaskName) -> tuple[Standby, ...]:
    """The first standby of the task."""
    return (Standby(task, TaskName(f"Standby-{task}-0")),)


def test_tasks_that_could_not_be_started_on_their_backup_are_counted() -> None:
    """STANDBY, part 4: ideally 0. Without standbys nothing is counted."""
    three = there((1, P), (2, Q), (3, R))
    before = next_plan(None, three, {P: (T,), Q: (U,)}, {}, standbys={Q: kept(T), R: kept(U)})
    left = there((2, Q), (3, R))
    backed = next_plan(before, left, {Q: (T, U)}, {})
    assert (backed.lost, backed.unbacked) == (1, 0)
    elsewhere = next_plan(before, left, {Q: (U,), R: (T,)}, {})
    assert (elsewhere.lost, elsewhere.unbacked) == (1, 1)
    again = next_plan(before, there((2, Q), (3, R), (4, P)), {P: (T,), Q: (U,)}, {})
    assert (again.lost, again.unbacked) == (0, 0)
    without = next_plan(FIRST, there((2, Q)), {Q: (T, U)}, {})
    assert (without.lost, without.unbacked) == (0, 0)


def test_a_location_has_a_task_once() -> None:
    """STANDBY, Invariant-1; and a standby needs its processor."""
    near = (Registration(1, P, Host("a")), Registration(2, Q, Host("a")))
    with pytest.raises(InvariantViolation, match="standby 'Standby-t-0' is at 'a', where its task"):
        next_plan(None, near, {P: (T,)}, {}, standbys={Q: kept(T)})
    with pytest.raises(InvariantViolation, match="processor 'r' has standbys and is not present"):
        next_plan(None, near, {P: (T,)}, {}, standbys={R: kept(T)})
    second = (Standby(T, TaskName("Standby-t-1")),)
    with pytest.raises(InvariantViolation, match="standby 'Standby-t-1' is at 'a'"):
        next_plan(None, near, {}, {}, standbys={P: kept(T), Q: second})


@settings(max_examples=80)
@given(st.data())
def test_what_reports_has_fenced_all_that_may_write_to_its_tasks(data: st.DataObject) -> None:
    """Safety I1, through sessions that come and go, reports that do not come, and lists that stay.

    A generation starts under any version that has it; from its report on it may write. The reports
    of processors that are no members are deleted. Inputs, and so tasks, go and come back.
    """
    plan, plans = None, list[Plan]()
    reports = dict[ProcessorId, int]()
    writers = dict[Incarnation, frozenset[TaskName]]()
    number, here = 0, dict[ProcessorId, int]()
    for _ in range(data.draw(st.integers(2, 9))):
        for id_ in data.draw(st.lists(st.sampled_from([P, Q, R]), max_size=2)):
            number += 1
            here[id_] = number
        for id_ in data.draw(st.lists(st.sampled_from(sorted(here)), max_size=1)) if here else ():
            del here[id_]
        if not here:
            continue
        names = data.draw(st.sampled_from([(T, U), (T, U), (T,), ()]))
        owners = {task: data.draw(st.sampled_from(sorted(here))) for task in names}
        assignment = {p: tuple(t for t in names if owners[t] == p) for p in here}
        registered = there(*((n, id_) for id_, n in here.items()))
        following = next_plan(plan, registered, assignment, reports)
        late = unreported(plan, following, reports)
        assert not [i for i in late if reports.get(i.processor_id) == i.epoch]
        plan = following
        plans.append(plan)
        members = {m.processor_id: m for m in plan.members}
        reports = {p: generation for p, generation in reports.items() if p in members}
        for id_ in data.draw(st.lists(st.sampled_from(sorted(members)), unique=True)):
            own, tasks = members[id_].incarnation, members[id_].tasks
            begun = [m for p in plans for m in p.members if m.incarnation == own]
            if reports.get(id_) != own.epoch:
                fence = data.draw(st.sampled_from(begun)).fence
                writers = {i: ts for i, ts in writers.items() if i not in fence}
            shared = [i for i, ts in writers.items() if i != own and not ts.isdisjoint(tasks)]
            assert not shared, (own, tasks, shared)
            writers[own] = frozenset(tasks)
            reports[id_] = own.epoch


CONFIG = Config({"job.name": "j"})


def _task(number: int) -> TaskModel:
    ssp = SystemStreamPartition("kafka", "in", number)
    return TaskModel(TaskName(f"t{number}"), (ssp,), number)


TASKS = [_task(number) for number in range(4)]
STANDBYS = [standby_task(task, 0) for task in TASKS]


def _model() -> JobModel:
    """P has t0 and keeps t1 and t2; q has the others, and r keeps t0 alone."""
    held = {P: [TASKS[0], STANDBYS[1], STANDBYS[2]], Q: TASKS[1:], R: [STANDBYS[0]]}
    return JobModel(
        Config({}), {p: ContainerModel(p, {t.task_name: t for t in own}) for p, own in held.items()}
    )


def _standby(number: int) -> Standby:
    return Standby(TASKS[number].task_name, STANDBYS[number].task_name)


def test_a_child_knows_whose_standbys_it_keeps() -> None:
    """In Samza's JSON the task follows from what the standby mirrors, so that it is there too."""
    own = model_of_child(CONFIG, _model(), P, [_standby(1)])
    assert {p: list(c.tasks) for p, c in own.containers.items()} == {
        P: ["t0", "Standby-t1-0"],
        Q: ["t1"],
    }
    read = decode_job_model(encode_job_model(own, mask_secrets=False))
    kept = part_of(read, P, TaskMode.STANDBY)
    assert kept is not None
    assert kept.containers[P].role is TaskMode.STANDBY
    assert kept.containers[P].tasks[TaskName("Standby-t1-0")].state_of == "t1"
    active = part_of(read, P, TaskMode.ACTIVE)
    assert active is not None
    assert (list(active.containers[P].tasks), active.config) == (["t0"], CONFIG)


def test_a_processor_may_have_one_kind_or_none() -> None:
    """Standbys alone; or what a list without any leaves."""
    alone = model_of_child(CONFIG, _model(), R, [_standby(0)])
    assert part_of(alone, R, TaskMode.ACTIVE) is None
    assert part_of(alone, R, TaskMode.STANDBY) is not None
    nothing = model_of_child(CONFIG, _model(), R, [])
    assert nothing.containers == {R: ContainerModel(R, {})}
    assert part_of(nothing, R, TaskMode.STANDBY) is None
    assert part_of(nothing, Q, TaskMode.STANDBY) is None
