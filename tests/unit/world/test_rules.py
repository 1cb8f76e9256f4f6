"""Every rule of safety: its schedules end well with it, and in a judge's verdict without it."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from tests.unit.world import schedules
from tests.unit.world.rules import RULES, SCHEDULES, UNBUILT, Schedule

for module in pkgutil.iter_modules(schedules.__path__):
    importlib.import_module(f"{schedules.__name__}.{module.name}")


@pytest.mark.search
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_with_the_rule_the_schedule_ends_well(schedule: Schedule) -> None:
    """All rules on: the judges find nothing."""
    schedule.announce()


@pytest.mark.search
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_without_the_rule_the_same_schedule_is_unsafe(schedule: Schedule) -> None:
    """The rule removed: the judges find what it guards against."""
    schedule.tell_without_the_rule()


def test_every_rule_has_a_schedule_but_those_of_what_is_not_built() -> None:
    """Neither is a schedule of an unknown rule, nor a rule without one left out in silence."""
    assert {s.rule for s in SCHEDULES} == set(RULES) - set(UNBUILT)
