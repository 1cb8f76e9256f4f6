"""The topics that a job lacks: one line for all of them."""

from __future__ import annotations

import pytest

from homeport.appmaster.doctor.kafka_checks import OUTPUT, TopicUse
from homeport.cli.job.kafka_check import Absent, refusal

_HOW = "(homeport local send {} KEY=VALUE on a local cluster, else kafka-topics --create)"


def _absent(name: str, system: str = "kafka", what: str = "input", servers: str = "a:1") -> Absent:
    key = "task.outputs" if what == OUTPUT else "task.inputs"
    return Absent(system, servers, TopicUse(name, what, frozenset(), key))


@pytest.mark.parametrize(
    ("absent", "line"),
    [
        (
            [_absent("in")],
            (
                "task.inputs = 'kafka.in': topic 'in' does not exist at a:1; "
                f"create it {_HOW.format('in')}, or correct the name"
            ),
        ),
        (
            [_absent("kafka.out", what=OUTPUT)],
            (
                "task.outputs = 'kafka.kafka.out': topic 'kafka.out' does not exist at a:1; "
                f"create it {_HOW.format('kafka.out')}, or set task.outputs.create.partitions, "
                "or correct the name, which is out without its system kafka"
            ),
        ),
        (
            [_absent("in"), _absent("kafka.rates"), _absent("out", "web", OUTPUT, "b:1")],
            (
                "task.inputs = 'kafka.in,kafka.kafka.rates': topics 'in', 'kafka.rates' do not "
                "exist at a:1, topics 'out' (task.outputs) do not exist at b:1; "
                f"create them {_HOW.format('TOPIC')}, or set task.outputs.create.partitions, or "
                "correct the names, kafka.rates is rates without its system kafka"
            ),
        ),
    ],
    ids=["input", "output", "all"],
)
def test_one_line_names_all_that_is_missing(absent: list[Absent], line: str) -> None:
    """And how each is created."""
    assert str(refusal(absent)) == line
