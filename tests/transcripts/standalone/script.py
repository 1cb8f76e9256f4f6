"""A transcript of one processor's machine: ``>`` lines are events, the answers stand below them.

The words of an event: ``session begins``, ``registered 1``, ``processors 1=p 2=q``, ``plan 1: p#1@1
t u standbys v to-fence q2; q#2@1``, ``barrier 1 NEW p#1``, ``computed p=t,u q= standbys p=v
fenced p1``, ``refused 2``,
``inputs changed``, ``started 1``, ``overtaken 1``, ``stopped t,u``, ``ended cut-off: <text>``,
``failed <text>``,
``disconnected``, ``reconnected``, ``expired``, ``time is over: barrier 1``, ``stop``. ``begin p``
starts from nothing, and a line ``computed`` may begin with a base: ``computed from 3``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from planned_models import model_of

from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone import protocol as wire
from homeport.job_coordinator.standalone.machine import step
from homeport.job_coordinator.standalone.plan import Member, Plan, Registration, Standby
from homeport.job_coordinator.standalone.state import ProcessorDecision, ProcessorState
from tests.transcripts.replay import replayed

_PLAIN: dict[str, wire.Event] = {
    "session begins": wire.SessionBegun(),
    "inputs changed": wire.InputsChanged(),
    "disconnected": wire.Disconnected(),
    "reconnected": wire.Reconnected(),
    "expired": wire.SessionExpired(),
    "stop": wire.StopRequested(),
}


def played(text: str) -> str:
    """``text`` with its answers made again; ValueError for a line that is no event."""
    state = _begun("p")

    def answers_to(line: str) -> list[str]:
        nonlocal state
        if line.startswith("begin "):
            state = _begun(line.removeprefix("begin "))
            return []
        event = _event(line, state)
        decision = step(state, event)
        assert step(state, event) == decision
        state = decision.state
        return _answers(decision)

    return replayed(text, answers_to)


def _begun(name: str) -> ProcessorState:
    return ProcessorState(ProcessorId(name), Host(f"at-{name}"))


def _event(line: str, state: ProcessorState) -> wire.Event:  # noqa: PLR0911 - one line per kind
    if line in _PLAIN:
        return _PLAIN[line]
    verb, _, rest = line.partition(" ")
    if verb in {"registered", "refused", "started", "overtaken"}:
        kinds: dict[str, Callable[[int], wire.Event]] = {
            "registered": wire.Registered,
            "refused": wire.PublishRefused,
            "started": wire.WorkStarted,
            "overtaken": wire.WorkOvertaken,
        }
        return kinds[verb](int(rest))
    if verb == "processors":
        return wire.ProcessorsSeen(_registrations(rest))
    if verb == "plan":
        return wire.PlanSeen(_plan(rest))
    if verb == "barrier":
        version, phase, *joined = rest.split()
        names = tuple(sorted((ProcessorId(p), int(n)) for p, n in (j.split("#") for j in joined)))
        return wire.BarrierSeen(int(version), wire.BarrierPhase[phase], names)
    if verb == "computed":
        return _computed(rest, state)
    if verb in {"stopped", "ended"}:
        cause, _, text = (rest if verb == "ended" else "ordered").partition(": ")
        return wire.WorkEnded(state.work.generation, StopCause(cause), text)
    if verb == "failed":
        return wire.Broken(rest)
    if line.startswith("time is over: "):
        kind, _, version = line.removeprefix("time is over: ").partition(" ")
        return wire.ProcessorTimerFired(
            wire.ProcessorTimer(wire.ProcessorTimerKind(kind), int(version or 0))
        )
    raise ValueError("no event")


def _tasks(text: str) -> tuple[TaskName, ...]:
    return tuple(TaskName(t) for t in text.replace(",", " ").split())


def _standbys(text: str) -> tuple[Standby, ...]:
    return tuple(Standby(task, TaskName(f"{task}'")) for task in _tasks(text))


def _registrations(text: str) -> tuple[Registration, ...]:
    pairs = (item.split("=") for item in text.split())
    return tuple(Registration(int(n), ProcessorId(p), Host(f"at-{p}")) for n, p in pairs)


def _plan(text: str) -> Plan:
    version, _, members = text.partition(": ")
    return Plan(int(version), tuple(_member(item) for item in members.split("; ")))


def _member(text: str) -> Member:
    name, _, rest = text.partition(" ")
    rest, _, fence = rest.partition("to-fence ")
    tasks, _, standbys = rest.partition("standbys ")
    found = re.fullmatch(r"(\w+)#(\d+)@(\d+)", name)
    if found is None:
        raise ValueError(f"no member: {name}")
    id_, sequence, generation = found[1], int(found[2]), int(found[3])
    fences = tuple(Incarnation(ProcessorId(f[0]), int(f[1:])) for f in fence.split())
    own = _standbys(standbys)
    return Member(ProcessorId(id_), sequence, generation, _tasks(tasks), fences, own)


def _computed(text: str, state: ProcessorState) -> wire.Computed:
    text, _, fenced = text.partition(" fenced ")
    base = state.version
    if text.startswith("from "):
        _, number, text = text.split(" ", 2)
        base = int(number)
    text, _, others = text.partition(" with ")
    there = _registrations(others) if others else state.registrations
    text, _, kept = text.partition(" standbys ")
    standbys = {ProcessorId(p): _standbys(t) for p, t in (item.split("=") for item in kept.split())}
    groups = {ProcessorId(p): _tasks(t) for p, t in (item.split("=") for item in text.split())}
    reports = {ProcessorId(item[0]): int(item[1:]) for item in fenced.split()}
    return wire.Computed(base, there, model_of(groups, standbys), reports)


def _answers(decision: ProcessorDecision) -> list[str]:
    answers = [f"because  {reason}" for reason in decision.reasons]
    answers += [f"write    {_words_of(record)}" for record in decision.records]
    answers += [f"order    {_words_of(order)}" for order in decision.instructions]
    state = decision.state
    work = state.work
    held = f", holds {' '.join(work.held)}" if work.held else ""
    leads = ", leads" if state.is_leader else ""
    answers.append(f"{state.life.value}{leads}, work {work.phase.value}@{work.generation}{held}")
    return answers


def _words_of(what: wire.Record | wire.Instruction) -> str:  # noqa: C901, PLR0911, PLR0912 - one case per kind
    match what:
        case wire.Publish(plan, leader, unreported):
            shown = "; ".join(map(_shown, plan.members))
            names = " ".join(f"{i.processor_id}{i.epoch}" for i in unreported)
            unless = f", unless one has reported: {names}" if names else ""
            return f"plan {plan.version}, of leader {leader}: {shown}{unless}"
        case wire.Join(version, processor_id, sequence):
            return f"{processor_id}#{sequence} joins barrier {version}"
        case wire.CloseBarrier(version, phase):
            return f"barrier {version} is {phase.value}"
        case wire.WriteLocations(tasks, location):
            return f"{' '.join(tasks)} at {location}"
        case wire.StartWork(version, generation, tasks, fence, standbys):
            fences = "".join(f" {i.processor_id}{i.epoch}" for i in fence) or " none"
            tasks_ = " ".join(tasks) or "no task"
            kept = f", standbys {_named(standbys)}" if standbys else ""
            return (
                f"start @{generation} of version {version}: {tasks_}{kept}, after fencing{fences}"
            )
        case wire.FollowStandbys(version, standbys):
            return f"standbys of version {version}: {_named(standbys) or 'none'}"
        case wire.StopWork():
            return "stop work"
        case wire.StartTimer(timer):
            return f"timer {timer.kind.value} {timer.version or ''}".rstrip()
        case wire.StopTimer(timer):
            return f"no timer {timer.kind.value} {timer.version or ''}".rstrip()
        case wire.EndProcessor(cause, text):
            return f"end, {cause.value}" + (f": {text}" if text else "")
        case wire.Register(processor_id, location):
            return f"register {processor_id} at {location}"
        case wire.Deregister(sequence):
            return f"registration {sequence} goes"
        case wire.ComputeModel(base):
            return f"compute the version after {base}"
        case wire.RenewSession():
            return "a new session"


def _shown(member: Member) -> str:
    fence = "".join(f" {i.processor_id}{i.epoch}" for i in member.fence)
    name = f"{member.processor_id}#{member.sequence}@{member.generation}"
    kept = f" standbys {_named(member.standbys)}" if member.standbys else ""
    return " ".join((name, *member.tasks)) + kept + (f" to-fence{fence}" if fence else "")


def _named(standbys: tuple[Standby, ...]) -> str:
    return " ".join(standby.task for standby in standbys)
