"""The metrics of a job's own: what Prometheus takes, and what people see."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from homeport.config.errors import WireError
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.own_metrics import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    MOST_BOUNDS,
    MOST_CHARACTERS,
    MOST_LABELS,
    OwnMetric,
    checked_bounds,
    checked_labels,
    known_metrics,
    series_text,
    summary,
)

ORDERS = OwnMetric("orders", COUNTER, (("country", "de"),), 3.0)
DEPTH = OwnMetric("depth", GAUGE, (("task", "Partition 0"),), -2.5)
AMOUNT = OwnMetric("amount", HISTOGRAM, (), 12.0, (1.0, 5.0), (1, 0, 2))


def test_names_and_labels_that_prometheus_takes() -> None:
    """In the order of the labels' names."""
    assert checked_labels("late_orders", {"b": "x", "a": ""}) == (("a", ""), ("b", "x"))
    assert checked_labels("A1", {}) == ()


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("late-orders", {}, "metric 'late-orders': it must have ASCII letters"),
        ("1st", {}, "metric '1st': it must"),
        ("", {}, "metric '': it must"),
        ("größe", {}, "it must have ASCII letters"),
        ("a" * (MOST_CHARACTERS + 1), {}, "it must have"),
        (7, {}, "metric 7: it must"),
        ("orders_total", {}, "Prometheus adds such an ending itself: leave it out"),
        ("x_bucket", {}, "leave it out"),
        ("x", {f"l{n}": "" for n in range(MOST_LABELS + 1)}, "it has 9 labels: give at most 8"),
        ("x", {"__a": "1"}, "metric 'x': label '__a': it must"),
        ("x", {"ä": "1"}, "label 'ä': it must"),
        ("x", {"processor": "1"}, "label 'processor' is Homeport's or Prometheus' own"),
        ("x", {"le": "1"}, "label 'le' is"),
        ("x", {"a": "b\ud800"}, "characters that UTF-8 has"),
        ("x", {"a": 1}, "label a=1: give a str of at most 128 characters"),
        ("x", {"a": "1" * (MOST_CHARACTERS + 1)}, "give a str of at most 128"),
    ],
)
def test_others_are_refused_in_one_line(
    name: str, labels: Mapping[str, object], expected: str
) -> None:
    """With the metric's name."""
    with pytest.raises(ValueError, match="metric") as error:
        checked_labels(name, labels)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_bounds_grow() -> None:
    """They become numbers."""
    assert checked_bounds("x", [1, 2.5]) == (1.0, 2.5)
    for wrong in (
        *(5, None, "ab", [10**400]),
        [],
        [2, 1],
        [1, 1],
        [float("nan")],
        [1, float("inf")],
        [float("-inf"), 1],
    ):
        with pytest.raises(ValueError, match=r"metric 'x': bounds .* each greater than the one"):
            checked_bounds("x", wrong)  # type: ignore[arg-type]  # a task may give anything
    with pytest.raises(ValueError, match=f"give 1 to {MOST_BOUNDS} finite numbers"):
        checked_bounds("x", range(MOST_BOUNDS + 1))


def test_a_series_is_written_as_prometheus_does() -> None:
    """With quotes in labels escaped."""
    assert ORDERS.series == 'orders{country="de"}'
    assert AMOUNT.series == "amount"
    assert series_text("x", [("a", 'q"\n')]) == 'x{a="q\\"\\n"}'


def test_the_numbers_of_a_series() -> None:
    """A histogram has two."""
    assert list(ORDERS.samples()) == [("orders", 3.0)]
    assert list(DEPTH.samples()) == [("depth", -2.5)]
    assert list(AMOUNT.samples()) == [("amount_count", 3), ("amount_sum", 12.0)]


def test_the_report_carries_them() -> None:
    """A kind of a later version is left out; what breaks a rule is refused with its place."""
    report = ContainerReport(own=(ORDERS, DEPTH, AMOUNT))
    body = report.to_json()
    assert ContainerReport.from_json(body) == report
    assert report.in_brief().own == ()
    later = {**body, "own": [*body["own"], ["s", "summary", [], 1.0, [], [], "more"]]}
    assert ContainerReport.from_json(later) == report
    assert ContainerReport.from_json({}).own == ()
    wrongs: tuple[list[object], ...] = (
        ["a b", COUNTER, [], 1.0],
        ["a", COUNTER, [["task", "t"]], 1.0],
        ["a", COUNTER, [], 1.0, [], [1]],
        ["a", HISTOGRAM, [], 1.0, [1.0], [1]],
        ["a", HISTOGRAM, [], 1.0, [2.0, 1.0], [1, 1, 1]],
        ["a", GAUGE, [], None],
    )
    for wrong in wrongs:
        with pytest.raises(WireError, match="the report of a container"):
            ContainerReport.from_json({"own": [wrong]})
    assert known_metrics([]) == ()


def test_the_summary_is_of_all_containers() -> None:
    """Counters are added up; gauges have their range; a histogram its count and mean."""
    found = summary(
        [
            ORDERS,
            OwnMetric("orders", COUNTER, (("country", "de"),), 4.0),
            OwnMetric("orders", COUNTER, (("country", "fr"),), 1e15),
            DEPTH,
            OwnMetric("depth", GAUGE, (("task", "Partition 1"),), 7.0),
            OwnMetric("one", GAUGE, (("task", "Partition 1"),), 7.0),
            AMOUNT,
            OwnMetric("none", HISTOGRAM, (), 0.0, (1.0,), (0, 0)),
        ]
    )
    assert found == [
        ("amount", "3, mean 4"),
        ("depth", "-2.5 to 7"),
        ("none", "0"),
        ("one", "7"),
        ('orders{country="de"}', "7"),
        ('orders{country="fr"}', "1e+15"),
    ]
