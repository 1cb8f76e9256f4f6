"""Which directories of a deleted job go: those whose own file names what was deleted with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.container.progress.deleted_directories import (
    DeletedTopics,
    StoreSource,
    deleted_verdict,
    kind_by,
    orphan_verdict,
)
from homeport.container.progress.host_directories import DirectoryKind

TOPICS = DeletedTopics(frozenset({"id-1"}), frozenset({"kafka.log"}))
OWN, FORMER = StoreSource("kafka.log", "id-1"), StoreSource("kafka.log", "id-0")


@pytest.mark.parametrize(
    ("source", "age_ms", "is_removable", "reason"),
    [
        (OWN, 0, True, "the job was deleted"),
        (FORMER, 9, False, "the job was deleted, and its changelog recreated before, but younger"),
        (FORMER, 10, True, "the job was deleted, and its changelog recreated before"),
        (StoreSource("kafka.x", "id-0"), 10, False, "its log kafka.x was not deleted with the job"),
        (StoreSource(fault="STORE-META is damaged"), 10, False, "STORE-META is damaged"),
    ],
)
def test_a_directory_goes_by_the_file_in_it(
    source: StoreSource,
    age_ms: int,
    is_removable: bool,  # noqa: FBT001 - of a row
    reason: str,
) -> None:
    """By the id at once; by the changelog's name once it is old; else it stays."""
    verdict = deleted_verdict(source, TOPICS, is_held=False, age_ms=age_ms, limit_ms=10)
    assert verdict.is_removable is is_removable
    assert verdict.reason.startswith(reason)
    held = deleted_verdict(source, TOPICS, is_held=True, age_ms=age_ms, limit_ms=10)
    assert (held.is_removable, held.reason) == (False, "in use")


@pytest.mark.parametrize(
    ("source", "topic_id", "age_ms", "is_removable", "reason"),
    [
        (OWN, None, 10, True, "nothing knows its job, and its log kafka.log is gone"),
        (OWN, "id-2", 10, True, "nothing knows its job, and its log kafka.log is gone"),
        (OWN, None, 9, False, "nothing knows its job, and its log kafka.log is gone, but younger"),
        (OWN, "id-1", 10, False, "its log kafka.log is still there"),
        (StoreSource(fault="STORE-META is damaged"), None, 10, False, "STORE-META is damaged"),
    ],
)
def test_a_directory_of_no_known_job_goes_once_its_log_is_gone(
    source: StoreSource,
    topic_id: str | None,
    age_ms: int,
    is_removable: bool,  # noqa: FBT001 - of a row
    reason: str,
) -> None:
    """And once it is old; where its file cannot be read it stays."""
    for is_held in (False, True):
        verdict = orphan_verdict(source, topic_id, is_held=is_held, age_ms=age_ms, limit_ms=10)
        assert verdict.is_removable is (is_removable and not is_held)
        assert verdict.reason.startswith("in use" if is_held else reason)


def test_a_directory_without_a_file_about_it_is_unknown() -> None:
    """Others are what a store has left."""
    assert kind_by(OWN) is DirectoryKind.VANISHED_STORE
    assert kind_by(StoreSource(fault="none")) is DirectoryKind.UNKNOWN


@given(
    st.builds(StoreSource, st.sampled_from(["kafka.log", "s.t"]), st.text(max_size=4)),
    st.integers(),
)
def test_what_names_neither_an_id_nor_a_changelog_of_the_job_stays(
    source: StoreSource, age_ms: int
) -> None:
    """At any age."""
    verdict = deleted_verdict(source, TOPICS, is_held=False, age_ms=age_ms, limit_ms=10)
    assert not verdict.is_removable or source.topic_id == "id-1" or source.stream == "kafka.log"
