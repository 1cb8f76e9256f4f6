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
    initial_state,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId
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
