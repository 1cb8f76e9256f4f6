"""Questions that a draft answers about its hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    ContainerPhase,
    ContainerState,
    EarlyPhase,
    EarlyRequest,
    Exclusion,
    ResourceState,
    initial_state,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from tests.unit.appmaster.allocation.conftest import SETTINGS

A, B, C = Host("a"), Host("b"), Host("c")
ZERO = ContainerState(ProcessorId("0"))
EARLY = EarlyRequest(ZERO.processor_id, RequestId(1), B)


@pytest.fixture
def draft() -> Draft:
    """Of a state without anything but two excluded hosts, of which ``b`` may be probed."""
    draft = Draft(initial_state(SETTINGS), "a test")
    draft.exclusions[A] = Exclusion(A)
    draft.exclusions[B] = Exclusion(B, is_probed=True)
    return draft


def closed(draft: Draft) -> list[Host]:
    """Those of the three hosts that no container may request."""
    return [h for h in (A, B, C) if draft.is_closed(h)]


def test_an_excluded_host_is_closed_unless_a_probe_may_be_sent(draft: Draft) -> None:
    """One probe: while it is requested or granted, early or not, no other request may follow."""
    assert closed(draft) == [A]
    for phase in (ContainerPhase.REQUESTED, ContainerPhase.ALLOCATED):
        draft.containers[ZERO.processor_id] = replace(ZERO, phase=phase, requested_host=B)
        assert closed(draft) == [A, B]
    del draft.containers[ZERO.processor_id]
    draft.early[ZERO.processor_id] = EARLY
    assert closed(draft) == [A, B]
    draft.early[ZERO.processor_id] = replace(EARLY, phase=EarlyPhase.OVER)
    assert closed(draft) == [A]


def test_a_host_is_requested_while_a_strict_request_is_pending(draft: Draft) -> None:
    """Early or not; not by one that is allocated or queued."""
    phases = (ContainerPhase.REQUESTED, ContainerPhase.ALLOCATED, ContainerPhase.QUEUED)
    for name, phase, host in zip("012", phases, (A, B, C), strict=True):
        draft.containers[ProcessorId(name)] = ContainerState(
            ProcessorId(name), phase=phase, requested_host=host
        )
    assert [h for h in (A, B, C) if draft.is_asked(h)] == [A]
    draft.early[ZERO.processor_id] = EARLY
    assert [h for h in (A, B, C) if draft.is_asked(h)] == [A, B]
    assert not draft.is_asked(None)


def test_load_counts_what_is_there_and_what_is_wanted(draft: Draft) -> None:
    """A container by its resource's host, a seeker by the host it wants, one without: nowhere."""
    draft.resources[ResourceId("r0")] = ResourceState(ResourceId("r0"), A, None)
    draft.containers[ZERO.processor_id] = replace(
        ZERO, phase=ContainerPhase.RUNNING, resource_id=ResourceId("r0")
    )
    for name, host in (("1", A), ("2", None)):
        draft.containers[ProcessorId(name)] = ContainerState(ProcessorId(name), requested_host=host)
    assert dict(draft.loads) == {A: 2}


def test_hosts_are_ranked_by_load_then_free_to_ask_then_name(draft: Draft) -> None:
    """The ranking follows every change, early requests too."""
    draft.hosts = (A, B, C)
    assert list(draft.ranking.best_first()) == [A, B, C]
    draft.early[ZERO.processor_id] = replace(EARLY, host=A)
    assert list(draft.ranking.best_first()) == [B, C, A]
    draft.containers[ProcessorId("1")] = ContainerState(ProcessorId("1"), requested_host=B)
    assert list(draft.ranking.best_first()) == [C, A, B]
    del draft.early[ZERO.processor_id]
    del draft.containers[ProcessorId("1")]
    assert list(draft.ranking.best_first()) == [A, B, C]
