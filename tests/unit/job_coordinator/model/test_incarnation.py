"""Incarnations and transactional ids."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from homeport.config.errors import WireError
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import (
    Incarnation,
    am_transactional_id,
    conversion_transactional_id,
    incarnation_of,
    state_partition,
    transactional_id,
)
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind, StopCause
from homeport.job_coordinator.model.silence import Silence
from homeport.job_coordinator.model.wire_form import value_of


def test_ids_of_different_jobs_differ() -> None:
    """Safety K3: a dot inside a part never reads as a separator."""
    incarnation = Incarnation(ProcessorId("0"), 3)
    ids = {
        transactional_id("a", "1.0", incarnation),
        transactional_id("a.1", "0", incarnation),
        transactional_id("a", "1", Incarnation(ProcessorId("0.0"), 3)),
        transactional_id("a%2E1", "0", incarnation),
    }
    assert len(ids) == 4
    assert transactional_id("a.1", "0", incarnation) == "homeport.a%2E1.0.processor.0.3"


def test_an_id_identifies_its_incarnation_within_its_job() -> None:
    """And nothing of another job's, of an AM's, or of anybody else."""
    for name in ("0", "0-0", "a.b"):
        own = Incarnation(ProcessorId(name), 12)
        identifier = transactional_id("a.1", "1", own)
        assert incarnation_of("a.1", "1", identifier) == own
        assert incarnation_of("a", "1", identifier) is None
    others = ["", "mine", "homeport.a.1.processor.0.x", "homeport.a.1.processor.0.03"]
    others.append(am_transactional_id("a", "1", 2, "application_1_7", 3))
    assert [incarnation_of("a", "1", other) for other in others] == [None] * len(others)


def test_each_attempt_of_an_am_has_its_own_id() -> None:
    """Safety A1: one id per rank (submission, application, attempt)."""
    assert am_transactional_id("j", "1", 2, "application_1_7", 3) == (
        "homeport.j.1.am.2.application_1_7.3"
    )


def test_a_conversion_has_an_id_that_is_no_incarnations() -> None:
    """It is the job's alone."""
    found = conversion_transactional_id("a.b", "1")
    assert found == "homeport.a%2Eb.1.convert"
    assert incarnation_of("a.b", "1", found) is None


def test_kafka_keeps_an_id_where_javas_hash_of_it_says() -> None:
    """As a JVM says: without the sign, of no letter, of 2 to the 31, and beyond 16 bits."""
    ids = ("homeport.j.1.processor.0.4", "a-stranger", "", "polygenelubricants", "ünï€\U0001f600")
    assert [state_partition(each, 50) for each in ids] == [13, 32, 0, 0, 28]
    assert [state_partition(each, 4) for each in ids] == [1, 2, 0, 0, 2]


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


TAIL = Restored(RestoreKind.TAIL, 5, 9, 5)


def test_nothing_is_fenced_after_an_end_in_order() -> None:
    """Any other end may leave a transaction open, also one that is no fault."""
    assert {c for c in StopCause if c.is_in_order} == {StopCause.FINISHED, StopCause.ORDERED}


def test_a_kind_that_is_not_known_is_refused() -> None:
    """The fault names the value and its path, in a line of bounded length."""
    assert value_of(Restored, TAIL.to_json(), "a restore") == TAIL
    with pytest.raises(WireError, match=r"a restore: Invalid enum value 'half' - at `\$\.kind`"):
        value_of(Restored, TAIL.to_json() | {"kind": "half"}, "a restore")
    with pytest.raises(WireError, match=r"at `\$\.kind`") as caught:
        value_of(Restored, TAIL.to_json() | {"kind": "half\n" * 500}, "a restore")
    assert len(str(caught.value)) < 350
    assert "\n" not in str(caught.value)


def test_a_sum_is_made_of_each_kind_and_refusal() -> None:
    """It names no offsets; of two reasons it has the first."""
    full = [Restored(RestoreKind.FULL, 0, 9, n, f"{n}: damaged", "damaged-store") for n in (1, 2)]
    assert Restored.sums([TAIL, *full]) == {
        "1 tasks, tail": replace(TAIL, from_offset=None, to_offset=None),
        "2 tasks, full, damaged-store": Restored(
            RestoreKind.FULL, None, None, 3, "1: damaged", "damaged-store", tasks=2
        ),
    }
    assert Restored.sums([]) == {}
