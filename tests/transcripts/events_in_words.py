"""The language of the transcripts: one line in words, one event of the allocator.

Every form stands in ``_FORMS`` beside what it means. Lists are separated by commas or spaces,
clauses by semicolons; ``0@3`` is epoch 3 of processor 0. A line that fits no form is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace

from homeport.appmaster.allocation.protocol.events import (
    ChargedFailures,
    ContainerStarted,
    ContainerStopped,
    Event,
    FailoverRecord,
    FailoverStep,
    FencedByDriver,
    FencesReported,
    HostsObserved,
    JobModelPublished,
    LagsReported,
    LauncherCheckedIn,
    LauncherSilent,
    PlacementRequested,
    ResourceAllocated,
    ResourceEnded,
    SettingsChanged,
    ShutdownRequested,
    SparesReported,
    Timer,
    TimerFired,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import PlacementRequest

_Match = re.Match[str]


def event_of(line: str, settings: AllocatorSettings) -> Event:
    """The event that ``line`` describes; ``settings`` are those in force.

    Raises:
        ValueError: no form of the language fits.
    """
    for form, build in _FORMS:
        match = re.fullmatch(form, line)
        if match is not None:
            return build(match)
    match = re.fullmatch(r"settings (.+)", line)
    if match is None:
        raise ValueError(f"{line!r} describes no event of the allocator")
    return SettingsChanged(settings_of(match[1], settings))


def settings_of(words: str, settings: AllocatorSettings) -> AllocatorSettings:
    """``settings`` with what ``words`` change, as in ``retry_count=1, drained_hosts=a+b``."""
    now = {field.name: getattr(settings, field.name) for field in fields(settings)}
    for word in _listed(words):
        name, value = word.split("=")
        if isinstance(now[name], bool):
            now[name] = {"true": True, "false": False}[value]
        elif isinstance(now[name], int):
            now[name] = int(value)
        else:
            now[name] = _hosts_like(now[name], value)
    return AllocatorSettings(**now)


def _hosts_like(before: object, text: str) -> tuple[Host, ...] | frozenset[Host]:
    """The hosts of ``a+b``, as a set where ``before`` is one."""
    hosts = tuple(Host(name) for name in text.split("+") if name)
    return frozenset(hosts) if isinstance(before, frozenset) else hosts


def _incarnation_of(text: str) -> Incarnation:
    """``0@3``."""
    processor, epoch = text.split("@")
    return Incarnation(ProcessorId(processor), int(epoch))


def _listed(text: str | None) -> list[str]:
    return re.split(r"[, ]+", text.strip()) if text and text.strip() else []


def _numbers(words: Iterable[str]) -> dict[ProcessorId, int]:
    pairs = (word.split("=") for word in words)
    return {ProcessorId(processor): int(number) for processor, number in pairs}


def _model(match: _Match) -> Event:
    first, *clauses = (clause.strip() for clause in match["rest"].split(";"))
    model = JobModelPublished(int(match["version"]), {})
    for word in filter(None, (w.strip() for w in first.split(","))):
        model = _with_processor(model, word)
    for clause in clauses:
        model = _with_clause(model, *clause.split(" ", 1))
    return model


def _with_processor(model: JobModelPublished, word: str) -> JobModelPublished:
    """``0``: no host known; ``0 last on a``; ``0-0 of 0 last on b``: a standby of 0."""
    match = re.fullmatch(r"(\S+)(?: of (\S+))?(?: last on (\S+))?", word)
    if match is None:
        raise ValueError(f"{word!r} describes no processor of a model")
    processor, host = ProcessorId(match[1]), Host(match[3]) if match[3] else None
    if match[2]:
        model = replace(model, standbys={**model.standbys, processor: ProcessorId(match[2])})
    return replace(model, processors={**model.processors, processor: host})


def _with_clause(model: JobModelPublished, name: str, words: str) -> JobModelPublished:
    """What the stream says besides: each clause is a field of the event."""
    if name in {"epochs", "floors", "former", "retired"}:
        return replace(model, **{name: _numbers(_listed(words))})  # type: ignore[arg-type] # by name
    if name == "gainers":
        return replace(model, gainers=frozenset(map(ProcessorId, _listed(words))))
    if name == "unfenced":
        processor, *listed = _listed(words)
        stated = {ProcessorId(processor): tuple(map(_incarnation_of, listed))}
        return replace(model, unfenced={**model.unfenced, **stated})
    if name == "failover":
        active, *record = _listed(words)
        told_failovers = {ProcessorId(active): _failover(dict(w.split("=") for w in record))}
        return replace(model, failovers={**model.failovers, **told_failovers})
    if name == "failures":
        charged, left_ms = words.split(" for ")
        told_failures = {
            processor: ChargedFailures(count, int(left_ms.removesuffix(" ms")))
            for processor, count in _numbers(_listed(charged)).items()
        }
        return replace(model, failures=told_failures)
    raise ValueError(f"a model says nothing of {name!r}")


def _failover(record: dict[str, str]) -> FailoverRecord:
    """``failover 0 epoch=1 standby=0-0 host=b step=standby``: as the stream says it."""
    return FailoverRecord(
        int(record["epoch"]),
        ProcessorId(record["standby"]) if "standby" in record else None,
        Host(record["host"]) if "host" in record else None,
        FailoverStep(record["step"]),
        tuple(map(ProcessorId, filter(None, record.get("used", "").split("+")))),
    )


def _hosts(match: _Match) -> Event:
    return HostsObserved(tuple(map(Host, _listed(match["hosts"]))))


def _launcher(match: _Match) -> Event:
    running = _incarnation_of(match["running"]) if match["running"] else None
    request = RequestId(int(match["request"])) if match["request"] else None
    return LauncherCheckedIn(ResourceId(match["id"]), Host(match["host"]), running, request)


def _ended(match: _Match) -> Event:
    return ResourceEnded(
        RequestId(int(match["request"])) if match["request"] else None,
        ResourceId(match["id"]) if match["id"] else None,
        story=match["story"] or "",
        is_own_fault=match["why"] == "its own fault",
        is_taken_back=match["why"] == "taken back",
    )


def _placement(match: _Match) -> Event:
    """``move u1: 0 to b, said at 100``; ``, expires after 9 ms`` and ``, for another run``.

    ``warm move`` is one whose state is read at the destination first, ``drain's move`` one that
    holds while its container is on a drained host.
    """
    return PlacementRequested(
        PlacementRequest(
            match["uuid"],
            "run-1",
            ProcessorId(match["processor"]),
            match["to"],
            int(match["expiry"]) if match["expiry"] else None,
            int(match["at"]),
            match["warm"] is not None,
            match["drain"] is not None,
        ),
        refusal="it is for another run of the job" if match["stray"] else "",
    )


def _timer(match: _Match) -> Event:
    kind, key = TimerKind(match["kind"]), match["key"]
    is_of_request = kind in {TimerKind.REQUEST_EXPIRY, TimerKind.CHECK_IN}
    return TimerFired(Timer(kind, int(key) if is_of_request else key))


def _stopped(match: _Match) -> Event:
    cause = StopCause(match["cause"])
    return ContainerStopped(_incarnation_of(match["name"]), cause, int(match["code"]))


def _fences(match: _Match) -> Event:
    fenced = tuple(map(_incarnation_of, _listed(match["fenced"])))
    return FencesReported(_incarnation_of(match["name"]), fenced)


_FORMS: tuple[tuple[str, Callable[[_Match], Event]], ...] = (
    (r"model (?P<version>\d+):(?P<rest>.*)", _model),
    (r"hosts(?P<hosts>.*)", _hosts),
    (
        (
            r"launcher (?P<id>\S+) checks in on (?P<host>\S+?)(?: running (?P<running>\S+@\d+))?"
            r"(?:, of request (?P<request>\d+))?"
        ),
        _launcher,
    ),
    (r"granted request (\d+)", lambda m: ResourceAllocated(RequestId(int(m[1])))),
    (
        (
            r"YARN ended(?: request (?P<request>\d+))?(?:,? launcher (?P<id>\S+?))?"
            r"(?:, (?P<why>its own fault|taken back))?(?:: (?P<story>.+))?"
        ),
        _ended,
    ),
    (r"behind (?P<lags>.+)", lambda m: LagsReported(_numbers(_listed(m["lags"])))),
    (
        r"Spark beside (?P<standby>\S+): (?P<ready>ready|gone)",
        lambda m: SparesReported({ProcessorId(m["standby"]): m["ready"] == "ready"}),
    ),
    (
        (
            r"(?P<drain>drain's )?(?P<warm>warm )?move (?P<uuid>\S+): "
            r"(?P<processor>\S+) to (?P<to>[^ ,]+), said at (?P<at>\d+)"
            r"(?:, expires after (?P<expiry>\d+) ms)?(?P<stray>, for another run)?"
        ),
        _placement,
    ),
    (r"silent launcher (\S+)", lambda m: LauncherSilent(ResourceId(m[1]))),
    (r"time is over: (?P<kind>[a-z-]+):(?P<key>\S+)", _timer),
    (r"started (\S+@\d+)", lambda m: ContainerStarted(_incarnation_of(m[1]))),
    (r"stopped (?P<name>\S+@\d+): (?P<cause>[a-z-]+), exit code (?P<code>-?\d+)", _stopped),
    (r"(?P<name>\S+@\d+) has fenced (?P<fenced>.+)", _fences),
    (r"the driver has fenced (\S+@\d+)", lambda m: FencedByDriver(_incarnation_of(m[1]))),
    (r"shutdown: ([A-Z]+), (.+)", lambda m: ShutdownRequested(m[1], m[2])),
)
"""(form of a line, its event)."""
