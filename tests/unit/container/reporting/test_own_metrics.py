"""What the tasks of one container count of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from homeport import Metrics
from homeport.container.reporting.own_metrics import MOST_SERIES, OwnMetrics
from homeport.job_coordinator.status.own_metrics import BOUNDS, OwnMetric


def _tasks() -> tuple[OwnMetrics, Metrics, Metrics]:
    own = OwnMetrics()
    return own, own.of_task("Partition 0"), own.of_task("Partition 1")


def test_counters_and_histograms_are_of_all_tasks_and_gauges_of_one() -> None:
    """Whatever the order in which labels are given."""
    own, one, other = _tasks()
    one.counter("orders", country="de", kind="x").inc()
    other.counter("orders", kind="x", country="de").inc(2.5)
    one.gauge("depth").set(3)
    other.gauge("depth").set(5)
    other.gauge("depth").inc(-1)
    one.histogram("amount", (1, 10)).observe(1)
    other.histogram("amount", [1, 10]).observe(70)
    one.histogram("seconds").observe(0.02)
    assert one.counter("orders", country="de", kind="x") is one.counter(
        "orders", country="de", kind="x"
    )
    found = {metric.series: metric for metric in own.sampled()}
    assert found['orders{country="de",kind="x"}'].value == 3.5
    assert found['depth{task="Partition 0"}'].value == 3
    assert found['depth{task="Partition 1"}'].value == 4
    assert found["amount"] == OwnMetric("amount", "histogram", (), 71.0, (1.0, 10.0), (1, 0, 1))
    assert found["seconds"].bounds == BOUNDS
    assert sum(found["seconds"].buckets) == 1


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda m: m.counter("a b"), "metric 'a b': it must have"),
        (lambda m: m.counter("x", n=3), "label n=3: give a str"),
        (lambda m: m.counter("x", n=["a"]), "label n=.'a'.: give a str"),
        (lambda m: m.histogram("x", 5), "give 1 to 32 finite numbers"),
        (lambda m: m.histogram("x", [[]]), "give 1 to 32 finite numbers"),
        (lambda m: m.histogram("x", ()), "give 1 to 32 finite numbers"),
        (lambda m: m.gauge("known"), "it is a counter with labels .'a',., and here a gauge"),
        (lambda m: m.counter("known"), "and here a counter with labels .., *give|another name"),
        (lambda m: m.histogram("sizes", (1, 3)), r"and bounds \(1.0, 2.0\), and here"),
        (lambda m: m.counter("x").inc(-1), "a counter only grows: -1 is below 0"),
        (lambda m: m.counter("x").inc(float("nan")), "nan is no finite number"),
        (lambda m: m.gauge("x").set(float("inf")), "inf is no finite number"),
        (lambda m: m.counter("x").inc(10**400), "is no finite number"),
        (lambda m: m.gauge("x").inc(float("-inf")), "-inf is no finite number"),
        (lambda m: m.histogram("x").observe(float("nan")), "nan is no finite number"),
        (lambda m: m.gauge("x").set("three"), "could not convert string to float"),
    ],
)
def test_misuse_is_one_line_and_changes_nothing(
    wrong: Callable[[Any], object], expected: str
) -> None:
    """Of the job's own code."""
    own, metrics, _ = _tasks()
    metrics.counter("known", a="b").inc()
    metrics.histogram("sizes", (1, 2)).observe(1)
    before = own.sampled()
    with pytest.raises(ValueError, match=expected):
        wrong(metrics)
    known = {each.series for each in before}
    assert tuple(each for each in own.sampled() if each.series in known) == before


def test_the_number_of_series_has_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    """Those beyond it are not reported, with one line in the log; those before go on."""
    own, metrics, other = _tasks()
    for number in range(MOST_SERIES + 50):
        metrics.counter("users", id=str(number)).inc()
    metrics.counter("users", id="0").inc()
    other.gauge("depth").set(1)
    assert len(own.sampled()) == MOST_SERIES
    assert own.sampled()[0].value == 2
    assert [sample.value for sample in own.figures()] == [51]
    (line,) = caplog.messages
    assert line.startswith('the metric users{id="256"} is not reported: the container has 256 ')
    assert "users" in repr(metrics)
    assert len(metrics._known) == MOST_SERIES  # type: ignore[attr-defined]  # of its class


def test_sums_stay_finite() -> None:
    """JSON has no infinity."""
    own, metrics, _ = _tasks()
    for _ in range(3):
        metrics.counter("x").inc(1.5e308)
    (found,) = own.sampled()
    assert 1.7e308 < found.value < float("inf")


def test_threads_lose_no_count() -> None:
    """Tasks of one container may run side by side."""
    own, metrics, _ = _tasks()

    def work() -> None:
        for _ in range(20_000):
            metrics.counter("x").inc()
            metrics.histogram("y").observe(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counter, histogram = own.sampled()
    assert (counter.value, sum(histogram.buckets), histogram.value) == (80_000, 80_000, 80_000)
