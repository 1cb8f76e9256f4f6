"""Where input goes on, and which inputs are read now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.errors import StoreError
from homeport.config.settings.input_section import InputPolicy, LostInput, OffsetDefault
from homeport.container.progress.input_position import (
    InputPosition,
    LostInputError,
    checkpoint_of,
    first_place,
    first_position,
    lost_story,
    next_position,
)
from homeport.container.progress.input_schedule import (
    BOOTSTRAP_TIER,
    InputSchedule,
    seconds_left,
    tier_of,
)
from homeport.container.progress.restore import OffsetRange
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

SSP = SystemStreamPartition("kafka", "in", 0)
RANGE = OffsetRange(oldest=10, head=20)
FAIL, EARLIEST, LATEST = LostInput.FAIL, LostInput.EARLIEST, LostInput.LATEST
OLDEST, UPCOMING = OffsetDefault.OLDEST, OffsetDefault.UPCOMING


def test_a_checkpoint_counts_unless_it_is_reset() -> None:
    """samza.reset.offset ignores it at each start."""
    assert checkpoint_of(SSP, {SSP: 14}, InputPolicy(OLDEST, FAIL)) == 14
    assert checkpoint_of(SSP, {}, InputPolicy(OLDEST, FAIL)) is None
    assert checkpoint_of(SSP, {SSP: 14}, InputPolicy(OLDEST, FAIL, is_reset=True)) is None


@pytest.mark.parametrize("lost", list(LostInput))
@pytest.mark.parametrize(("following", "start"), [(15, 15), (20, 20), (10, 10), (9, 10)])
def test_reading_goes_on_where_the_next_record_is(
    following: int, start: int, lost: LostInput
) -> None:
    """Inside of the partition, and at its end.

    The end of a transaction is no loss: a partition that was read to its last record, and is
    emptied by retention, goes on.
    """
    assert next_position(SSP, following, RANGE, lost) == InputPosition(start)


def test_without_a_checkpoint_the_default_decides() -> None:
    """Oldest is the first that is kept, upcoming the end, as is a time that no record has."""
    assert first_position(OLDEST, RANGE) == InputPosition(10)
    assert first_position(UPCOMING, RANGE) == InputPosition(20)
    assert first_position(1_700_000_000_000, RANGE, 13) == InputPosition(13)
    assert first_position(1_700_000_000_000, RANGE, None) == InputPosition(20)


def test_records_that_are_gone_fail_the_task_or_are_counted() -> None:
    """As the policy says: one line with place, position, range, key and remedy; or a gap."""
    with pytest.raises(LostInputError) as caught:
        next_position(SSP, 7, RANGE, FAIL)
    assert str(caught.value) == (
        "kafka.in partition 0: the next offset to read is 7, but Kafka has 10 to 20: it has "
        "deleted 3 offsets that were not read, by retention; set "
        "systems.kafka.streams.in.input.lost=earliest to go on without them, or =latest to skip "
        "all there is"
    )
    assert next_position(SSP, 7, RANGE, EARLIEST) == InputPosition(10, lost=3)
    assert next_position(SSP, 7, RANGE, LATEST) == InputPosition(20, lost=13)
    assert lost_story(SSP, InputPosition(10, lost=3)) == (
        "input lost: kafka.in partition 0: offsets 7 to 9 (3) were not read: Kafka has deleted "
        "records there; going on at 10"
    )


@pytest.mark.parametrize("lost", list(LostInput))
def test_a_checkpoint_beyond_the_end_is_refused(lost: LostInput) -> None:
    """The topic was recreated: going on anywhere would be wrong, whatever the policy says."""
    with pytest.raises(StoreError, match=r"has processed offset 20, .* ends at 20: .* recreated"):
        next_position(SSP, 21, RANGE, lost)


def test_a_partition_that_its_input_has_grown_by_begins_at_its_oldest() -> None:
    """Of the partitions of the first start, and of an input without a count, the policy says."""
    counts = {SSP.system_stream: SSP.partition + 1}
    grown = SystemStreamPartition(SSP.system, SSP.stream, SSP.partition + 1)
    for default in OffsetDefault:
        policy = InputPolicy(default, FAIL)
        assert first_place(SSP, policy, counts) == default
        assert first_place(grown, policy, counts) == "oldest"
        assert first_place(grown, policy, counts, is_known=True) == default
        assert first_place(grown, policy, {}) == default


TABLE0, TABLE1 = (SystemStreamPartition("kafka", "table", n) for n in (0, 1))
HIGH, LOW = (SystemStreamPartition("kafka", name, 0) for name in ("high", "low"))
TIERS = {TABLE0: BOOTSTRAP_TIER, TABLE1: BOOTSTRAP_TIER, HIGH: 5, LOW: 0}
STARTS = dict.fromkeys(TIERS, 0)
ONE, OTHER = TaskName("Partition 0"), TaskName("Partition 1")
READERS = {TABLE0: {ONE}, TABLE1: {OTHER}, HIGH: {ONE}, LOW: {OTHER}}
SCHEDULE = InputSchedule(TIERS, READERS, frozenset())
"""Tables of two tasks; ``replace(..., stored=...)`` makes the tables adjunct stores."""


@pytest.mark.parametrize(
    ("is_bootstrap", "priority", "tier"), [(False, 0, 0), (False, 7, 7), (True, 3, BOOTSTRAP_TIER)]
)
def test_a_bootstrap_stream_is_above_every_priority(
    is_bootstrap: bool,  # noqa: FBT001 - a parameter of the table
    priority: int,
    tier: int,
) -> None:
    """Samza: its priority is the largest number there is."""
    policy = InputPolicy(
        OffsetDefault.OLDEST, LostInput.FAIL, is_bootstrap=is_bootstrap, priority=priority
    )
    assert tier_of(policy) == tier


def test_nothing_else_is_read_before_every_bootstrap_partition_is_at_its_end() -> None:
    """The ends are those of the start; the last of them lets the others begin."""
    schedule = SCHEDULE.begun(STARTS, {TABLE0: 3, TABLE1: 2, HIGH: 9, LOW: 9})
    assert schedule.waiting() == {HIGH, LOW}
    schedule = schedule.passed({TABLE0: 3, TABLE1: 1})
    assert schedule.is_bootstrapping
    assert schedule.waiting() == {HIGH, LOW}, "Samza: the whole container waits"
    schedule = schedule.passed({TABLE0: 3, TABLE1: 2})
    assert not schedule.is_bootstrapping
    assert schedule.waiting() == frozenset()
    assert schedule.order(others_first=False) == (BOOTSTRAP_TIER, 5, 0)


def test_a_store_that_is_filled_holds_the_tasks_that_read_it_alone() -> None:
    """ADJUNCT: consistent per task, of one stream per container. What is shared waits with each."""
    filled = frozenset({TABLE0, TABLE1})
    schedule = replace(SCHEDULE, stored=filled).begun(STARTS, {TABLE0: 3, TABLE1: 2})
    assert schedule.waiting() == {HIGH, LOW}
    schedule = schedule.passed({TABLE0: 3, TABLE1: 1})
    assert schedule.waiting() == {LOW}
    assert schedule.passed({TABLE0: 3, TABLE1: 2}).waiting() == frozenset()
    assert schedule.passed({TABLE0: 3, TABLE1: 2}).waiting({ONE}) == {HIGH}, "it has no version"
    both = {**READERS, LOW: {ONE, OTHER}}
    shared = replace(schedule, readers=both)
    assert shared.waiting() == {LOW}
    assert shared.waiting({ONE}) == {HIGH, LOW}
    of_container = replace(schedule, readers={**READERS, TABLE1: {ONE, OTHER}})
    assert of_container.waiting() == {HIGH, LOW}
    assert replace(schedule, stored={TABLE0}).waiting() == {HIGH, LOW}, "TABLE1 is for the tasks"


def test_bootstrap_streams_and_those_who_wait_for_none_take_turns() -> None:
    """Else a store that is filled for hours would keep the other tasks from reading."""
    assert SCHEDULE.order(others_first=True) == (5, 0, BOOTSTRAP_TIER)
    without = InputSchedule({HIGH: 5, LOW: 0}, {}, frozenset())
    assert without.order(others_first=True) == (5, 0)


def test_a_partition_that_was_at_its_end_never_holds_up_the_others_again() -> None:
    """L13: caught-up partitions are dropped at the start and later, for good."""
    schedule = SCHEDULE.begun(STARTS, {TABLE0: 0, TABLE1: 2})
    assert set(schedule.ends) == {TABLE1}
    done = schedule.passed({TABLE0: 5, TABLE1: 2})
    assert done.passed({TABLE0: 0, TABLE1: 0}) is done
    assert not done.is_bootstrapping
    unheard = SCHEDULE.begun({}, {TABLE0: 1, TABLE1: 1}).passed({TABLE0: 1})
    assert unheard.ends == {TABLE1: 1}, "what is not said to be read is not"


def test_the_time_that_is_left_is_what_it_takes_at_the_rate_so_far() -> None:
    """Of all bootstrap partitions together; nothing is known before anything was read."""
    schedule = SCHEDULE.begun(STARTS, {TABLE0: 30, TABLE1: 70, HIGH: 9})
    assert schedule.left({}) == 100
    following = {TABLE0: 30, TABLE1: 50, HIGH: 0}
    assert schedule.passed(following).left(following) == 20
    assert seconds_left(1000.0, 100, 1008.0, 20) == 2.0
    assert seconds_left(1000.0, 100, 1008.0, 100) is None
    assert seconds_left(1000.0, 100, 1000.0, 20) is None
