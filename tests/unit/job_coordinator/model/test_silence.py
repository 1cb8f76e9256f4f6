"""Silence: when it has lasted for long enough, and when it must not be counted."""

from __future__ import annotations

from homeport.job_coordinator.model.silence import Silence


def test_silence_counts_from_the_first_question_without_an_answer() -> None:
    """All questions in between had none either."""
    silence = Silence(1000)
    assert not silence.asked(50, is_answered=False)
    assert not silence.asked(1049, is_answered=False)
    assert silence.asked(1050, is_answered=False)


def test_any_answer_starts_the_time_again() -> None:
    """However long it took to come."""
    silence = Silence(1000)
    assert not silence.asked(0, is_answered=False)
    assert not silence.asked(999, is_answered=True)
    assert not silence.asked(1500, is_answered=False)
    assert not silence.asked(2499, is_answered=False)
    assert silence.asked(2500, is_answered=False)


def test_a_process_that_stood_still_sends_a_request_before_the_time_counts() -> None:
    """The question that was under way has failed meanwhile; the next one is answered."""
    silence = Silence(1000)
    assert not silence.asked(0, is_answered=True)
    assert not silence.asked(9_000_000, is_answered=False)
    assert not silence.asked(9_000_500, is_answered=True)
    assert not silence.asked(9_001_200, is_answered=False)
