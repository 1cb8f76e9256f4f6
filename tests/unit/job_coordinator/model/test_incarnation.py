"""Incarnations and transactional ids."""

from __future__ import annotations

from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import (
    Incarnation,
    am_transactional_id,
    incarnation_of,
    state_partition,
    transactional_id,
)


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


def test_kafka_keeps_an_id_where_javas_hash_of_it_says() -> None:
    """As a JVM says: without the sign, of no letter, of 2 to the 31, and beyond 16 bits."""
    ids = ("homeport.j.1.processor.0.4", "a-stranger", "", "polygenelubricants", "ünï€\U0001f600")
    assert [state_partition(each, 50) for each in ids] == [13, 32, 0, 0, 28]
    assert [state_partition(each, 4) for each in ids] == [1, 2, 0, 0, 2]
