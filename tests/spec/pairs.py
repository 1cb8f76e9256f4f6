"""Actives and standbys that run, for the tests of STANDBY's sentences and scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from homeport.appmaster.allocation.protocol.events import JobModelPublished, ResourceEnded
from homeport.appmaster.allocation.protocol.instructions import Instruction, RequestResource
from homeport.job_coordinator.model.ids import ProcessorId, RequestId, ResourceId
from tests.unit.appmaster.allocation.conftest import Machine, check_in, live, model, started

TAKEN_BACK = "Container preempted by scheduler"


def group(homes: Mapping[str, str | None], version: int = 1, **epochs: int) -> JobModelPublished:
    """A JobModel; ``0-1`` is a standby of ``0``; epochs as ``p0=3``."""
    standbys = {p: p.split("-")[0] for p in homes if "-" in p}
    return replace(
        model(homes, version, **epochs),
        standbys={ProcessorId(s): ProcessorId(a) for s, a in standbys.items()},
    )


def running(machine: Machine, places: Mapping[str, str], *more_hosts: str) -> Machine:
    """Each processor runs at home, in launcher ``r-<processor>``, with epoch 1."""
    hosts = [*dict.fromkeys([*places.values(), *more_hosts])]
    machine.feed(group(dict(places)), live(*hosts))
    for processor, host in places.items():
        request = machine.container(processor).request_id
        machine.feed(check_in(f"r-{processor}", host, request=request))
        assert machine.container(processor).resource_id == f"r-{processor}"
        machine.feed(started(processor, 1))
    return machine


def loses_launcher(processor: str, *, is_taken_back: bool = False) -> ResourceEnded:
    """The launcher that this processor runs on is gone, with evidence."""
    story = TAKEN_BACK if is_taken_back else "killed"
    resource = ResourceId(f"r-{processor}")
    return ResourceEnded(resource_id=resource, story=story, is_taken_back=is_taken_back)


def asked(instructions: tuple[Instruction, ...]) -> list[str | None]:
    """The hosts of the requests, in the order in which they are made."""
    return [i.host for i in instructions if isinstance(i, RequestResource)]


def request_of(machine: Machine, processor: str) -> RequestId:
    """The request that is outstanding for this processor."""
    request_id = machine.container(processor).request_id
    assert request_id is not None
    return request_id
