"""scripts/bench failover: its options, and what it makes of failures."""

from __future__ import annotations

import pytest
from benchmarks.failover.grown.package.grown_state import numbers_of
from benchmarks.failover.mixed import STEPS, Loss, memory_row, percentile_90
from benchmarks.failover.mixed import rows_of as rows_of_losses
from benchmarks.failover.rows import HOST_LOST, line_of, rows_of
from benchmarks.failover.runs import Failure, partition_of
from benchmarks.options import parse_arguments
from benchmarks.report import print_section, spread
from flights_demo.lost_host.timeline import PHASES


def test_there_are_five_runs_where_nothing_is_said() -> None:
    """Or as many as the option says."""
    assert parse_arguments(["failover"]).runs == 5
    assert parse_arguments(["failover", "--runs", "7"]).runs == 7


def _failure(total_s: float, records: int = 3) -> Failure:
    phases = dict.fromkeys(PHASES, total_s / len(PHASES))
    return Failure(total_s, phases, 0.25, records, "failover", 5.0, 0.5)


def test_failures_become_medians_and_ranges() -> None:
    """The whole beside its target, each phase, what was read, how busy the machine was."""
    _, standby, _ = HOST_LOST
    rows = list(rows_of(standby, [_failure(8.0), _failure(10.0), _failure(80.0, 9)]))
    assert (rows[0].value, rows[0].target, rows[0].reached) == ("10 s (8 to 80)", "<= 8.6 s", False)
    assert dict(rows[0].parts) == dict.fromkeys(PHASES, 1.25)
    shown = {row.what.strip(): row for row in rows[1:]}
    assert shown["stores opened and brought to their heads"].reached
    assert shown["detect"].reached is None
    assert shown["changelog records read"].value == "3 (3 to 9)"
    assert shown["cores busy meanwhile"].value == "50 % (50 to 50)"
    assert len(rows) == 1 + len(PHASES) + 4


def _loss(detect_s: float, each_s: float) -> Loss:
    steps = dict.fromkeys(STEPS, each_s) | {"detect": detect_s}
    return Loss(steps, 3, 5.0, 0.5)


def test_a_loss_under_mixed_containers_is_shown_beyond_its_detection() -> None:
    """Which the lease sets; median and 90th percentile have a target each."""
    found = [_loss(3.5, 0.05) for _ in range(9)] + [_loss(3.5, 1.0)]
    rows = {row.what.strip(): row for row in rows_of_losses("mixed", found)}
    whole = rows["mixed: SIGKILL to first committed output of all tasks"]
    assert (whole.value, whole.reached) == ("3.85 s (3.85 to 10.5)", True)
    beyond = rows["all that follows detection"]
    assert (beyond.value, beyond.target) == ("0.35 s (0.35 to 7)", "<= 0.6 s")
    assert rows["its 90th percentile"].reached
    assert rows["detect"].value == "3.5 s (3.5 to 3.5)"


@pytest.mark.parametrize(("values", "found"), [([5.0], 5.0), ([3.0, 1.0, 2.0], 3.0)])
def test_nine_tenths_are_at_most_the_percentile(values: list[float], found: float) -> None:
    """The largest counts where there are few values."""
    assert percentile_90(values) == found


def test_the_memory_of_mixed_containers_is_a_share() -> None:
    """The share compares with the same job with standby containers."""
    row = memory_row(3072, 6144)
    assert (row.value, row.target, row.reached) == ("50 %", "<= 60 %", True)


def test_mixed_is_a_section_of_its_own() -> None:
    """By an option too."""
    assert parse_arguments(["failover", "--mixed"]).sections == ("mixed",)


def test_a_run_is_one_line() -> None:
    """With its phases; one that it has not had is nought."""
    no_standby, _, _ = HOST_LOST
    failure = Failure(1.5, {"detect": 1.25}, 0.25, 12_345, "elsewhere", 4.25, 0.875)
    assert line_of(no_standby, 2, 5, failure) == (
        "  no standby, 2 of 5: 1.50 s (detect 1.25, decide 0.00, stop 0.00, resource 0.00, start "
        "0.00, fence 0.00, restore 0.00, first-batch 0.00); 12,345 records read; load 4.2, cores "
        "88% busy"
    )


def test_a_plot_shows_what_a_figure_consists_of(capsys: pytest.CaptureFixture[str]) -> None:
    """Letters at one scale, the longest of 60 characters; no part gets lost in rounding."""
    rows = [
        spread("long", [6.0], "s", parts=(("wait", 4.0), ("start", 2.0))),
        spread("short", [1.5], "s", parts=(("wait", 0.75), ("start", 0.75))),
    ]
    print_section("Title", rows, plot=True)
    *_, legend, long, short = capsys.readouterr().out.splitlines()
    assert legend.split() == ["a", "wait", "b", "start"]
    assert long.split()[1] == "a" * 40 + "b" * 20
    assert short.split()[1] in {"a" * 7 + "b" * 8, "a" * 8 + "b" * 7}
    print_section("Title", rows)
    assert "aaa" not in capsys.readouterr().out


def test_a_touch_goes_to_the_task_that_has_the_key() -> None:
    """What a record makes grow and what changes it later are of one partition."""
    assert numbers_of("grow 8000 4000") == (8000, 4000)
    assert numbers_of("touch 8123") == (8123, 1)
    assert {partition_of(n) for n in range(8000, 12_000)} == {partition_of(8000)}
    assert partition_of(8000) != partition_of(12_000)
