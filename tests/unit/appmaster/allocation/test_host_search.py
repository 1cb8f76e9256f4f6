"""Questions about one placement."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation import host_search
from homeport.appmaster.allocation.job_state.state import ContainerState, ResourceState
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from tests.unit.appmaster.allocation.conftest import SETTINGS

A, B, C = Host("a"), Host("b"), Host("c")
ZERO = ContainerState(ProcessorId("0"))


def launcher(name: str, host: Host) -> ResourceState:
    """An idle launcher."""
    return ResourceState(ResourceId(name), host, None)


def test_candidates_are_live_untried_and_can_be_requested_by_name() -> None:
    """In the order of their names."""
    tried = replace(ZERO, tried=(A,))
    assert host_search.candidate_hosts(SETTINGS, (C, B, A), (), tried) == (B, C)
    assert host_search.candidate_hosts(SETTINGS, (C, B, A), {B}, tried) == (C,)
    strict = replace(SETTINGS, strict_hosts=(A, C))
    assert host_search.candidate_hosts(strict, (C, B, A), (), tried) == (C,)


def test_home_is_best_then_the_first_ranked_host_apart_from_the_group() -> None:
    """None where there is no candidate."""
    ranked = (C, B, A)
    assert host_search.best_host(ranked, B, {A, B}.__contains__) == B
    assert host_search.best_host(ranked, C, {A, B}.__contains__) == B
    assert host_search.best_host(ranked, None, {A, B}.__contains__, {B}.__contains__) == A
    assert host_search.best_host(ranked, None, {A, B}.__contains__, {A, B}.__contains__) == B
    assert host_search.best_host(ranked, A, set[Host]().__contains__) is None


def test_an_idle_launcher_is_taken_at_home_or_where_home_is_not_requested() -> None:
    """At home always; else on the chosen host, else on the least loaded; never instead of home."""
    at_a, at_b, at_c = launcher("r1", A), launcher("r2", B), launcher("r3", C)
    assert host_search.best_launcher((at_b, at_a), A, A, {}) == at_a
    assert host_search.best_launcher((at_b, at_c), A, A, {}) is None
    assert host_search.best_launcher((at_b, at_c), C, A, {}) == at_c
    assert host_search.best_launcher((at_b, at_c), None, A, {B: 1}) == at_c
    assert host_search.best_launcher((at_b, at_c), A, None, {}) == at_b
