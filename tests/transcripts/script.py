"""A transcript: a text whose ``>`` lines are played to the allocator, each answered below it.

Lines that begin with two spaces are the answers: what the step decided, in the text of ``telling``.
All other lines are for the reader and stay as they are. ``played`` writes the answers again.
"""

from __future__ import annotations

from homeport.appmaster.allocation.container_process_manager import step
from homeport.appmaster.allocation.invariants import check, check_step
from homeport.appmaster.allocation.job_state.state import AllocatorState, initial_state
from homeport.appmaster.allocation.protocol.events import describe
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from tests.transcripts.events_in_words import event_of, settings_of
from tests.transcripts.replay import replayed
from tests.transcripts.telling import announce

SETTINGS = AllocatorSettings(
    host_affinity_enabled=True,
    retry_count=2,
    retry_window_ms=300_000,
    fail_job_after_retries=True,
    request_timeout_ms=5_000,
    check_in_timeout_ms=60_000,
)
"""What a transcript begins with, unless its first lines are ``> begin ...``."""


def played(text: str) -> str:
    """``text`` with its answers recreated, every invariant checked after every step.

    Raises:
        ValueError: a line that describes no event; the message has its number.
    """
    state = initial_state(SETTINGS)

    def answers_to(line: str) -> list[str]:
        nonlocal state
        state, answers = _answered(state, line)
        return answers

    return replayed(text, answers_to)


def _answered(state: AllocatorState, line: str) -> tuple[AllocatorState, list[str]]:
    """``begin ...`` and ``a new driver`` set the scene; anything else is an event."""
    if line.startswith("begin "):
        return initial_state(settings_of(line.removeprefix("begin "), SETTINGS)), []
    if line == "a new driver":
        return initial_state(state.settings, state.next_request_id), []
    event = event_of(line, state.settings)
    decision = step(state, event)
    check(decision.state)
    check_step(state, decision.state, describe(event))
    return decision.state, announce(state, decision)
