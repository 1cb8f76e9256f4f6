"""scripts/bench throughput: its input, its judgement of results, its options and its ratios."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.options import TAKE_PART, parse_arguments
from benchmarks.report import BenchmarkError
from benchmarks.throughput import runs, work
from benchmarks.throughput.check import Results
from benchmarks.throughput.contestants import (
    COUNT,
    FRONT,
    OUTPUT,
    Command,
    Contestant,
    Input,
    Took,
    run_once,
)

_PROGRAMS = Path(runs.__file__).parent
_SCRIPTS = _PROGRAMS.parents[1]
_PEERS = sorted(pins.stem for pins in _PROGRAMS.glob("*.txt"))


@pytest.mark.parametrize("peer", _PEERS)
def test_an_environment_of_a_peer_need_not_have_homeport(peer: str) -> None:
    """What a peer's program imports of ours needs no installed package at all."""
    program = ast.parse((_PROGRAMS / f"{peer}_job.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(program) if isinstance(node, ast.ImportFrom)]
    ours = [node.module for node in imports if str(node.module).startswith("benchmarks")]
    assert ours
    code = f"import importlib, sys; sys.path.append({str(_SCRIPTS)!r})\n"
    code += f"for name in {ours}: importlib.import_module(name)"
    # without the packages of any environment
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, timeout=60)


def test_what_is_right_follows_from_the_records() -> None:
    """By JSON's own parser; and the records are the same each time."""
    records = list(work.records(2000, 10))
    assert records == list(work.records(2000, 10))
    kept: Counter[bytes] = Counter()
    sums: dict[bytes, int] = {}
    for _, key, value in records:
        n = json.loads(value)["n"]
        kept[key] += n < work.LIMIT
        sums[key] = sums.get(key, 0) + n
    right = work.Right()
    assert list(right.noted(records)) == records
    assert right.counts == dict(kept)
    assert {key: sent[-1] for key, sent in right.sums.items()} == sums
    assert sum(map(len, right.sums.values())) == 2000
    assert len({(place, key) for place, key, _ in records}) == 10


class _Read(Results):
    """Of a topic with these records."""

    def __init__(self, records: list[tuple[bytes, bytes | None]]) -> None:
        self._records = records

    def of(self, _topic: str) -> Iterator[tuple[bytes, bytes | None]]:
        yield from self._records


def test_an_output_that_is_missing_doubled_or_out_of_turn_is_an_error() -> None:
    """Named with the key and both values."""
    right = {b"a": [1, 2], b"b": [3]}
    whole: list[tuple[bytes, bytes | None]] = [(b"a", b"1"), (b"b", b"3"), (b"a", b"2")]
    _Read(whole).require_all("out", right)
    for wrong in (whole[:2], [*whole, whole[2]], whole[::-1]):
        with pytest.raises(BenchmarkError, match="1 of 2 keys are wrong; of key b'a' it has "):
            _Read(wrong).require_all("out", right)


def test_the_last_count_of_each_key_is_compared() -> None:
    """As sent, and as Quix Streams names its state."""
    right = {b"a": 2}
    _Read([(b"a", b"1"), (b"a", b"2")]).require_last("out", right)
    _Read([(b"a|total", b"1"), (b"a|total", b"2")]).require_state("log", right)
    with pytest.raises(BenchmarkError):
        _Read([(b"a", b"2"), (b"a", b"1")]).require_last("out", right)
    with pytest.raises(BenchmarkError):
        _Read([(b"a|total", b"2"), (b"b|total", b"1")]).require_state("log", right)


def test_ratios_are_of_medians_with_a_target_for_the_first_of_ours() -> None:
    """Times as fast, by the clock and by CPU."""
    times = {"typed pipeline + BatchTask": 2.0, "from_json pipeline + BatchTask": 4.0}
    times |= {"BatchTask alone": 1.0, "Quix Streams": 6.0}
    found = {title: [Took(s, 2 * s), Took(s, 2 * s), Took(90, 90)] for title, s in times.items()}
    found["Spark Structured Streaming"] = [Took(1.0, 4.0)]
    found["Faust"] = [Took(90.0, 90.0)]
    rows = {row.what: row for row in runs._ratios(COUNT, found)}
    first = rows["typed pipeline + BatchTask against Quix Streams, by the clock"]
    assert (first.number, first.reached) == (3.0, False)
    alone = rows["BatchTask alone against Quix Streams, by CPU"]
    assert (alone.number, alone.reached) == (6.0, None)
    spark = rows["typed pipeline + BatchTask against Spark Structured Streaming, by the clock"]
    assert (spark.number, spark.reached) == (0.5, False)
    assert list(runs._ratios(COUNT[4:], found)) == []


def test_all_take_part_three_times_by_default() -> None:
    """A million records by default."""
    found = parse_arguments(["throughput"])
    assert (found.runs, found.records) == (3, 1_000_000)
    assert found.contestants == ("ours", "class", "quix", "spark")
    some = ["throughput", "--contestants", "ours,quix", "--records", "5", "--runs", "1"]
    found = parse_arguments(some)
    assert (found.runs, found.records, found.contestants) == (1, 5, ("ours", "quix"))
    assert found.sections == ("output", "count")


def test_a_section_in_which_no_contestant_takes_part_is_left_out() -> None:
    """Unless it is named: then that is an error."""
    alone = ["throughput", "--contestants", "spark"]
    assert parse_arguments(alone).sections == ("count",)
    assert parse_arguments([*alone, "--section", "output"]).sections == ("output",)


def test_each_contestant_is_in_the_help_and_in_the_sections_that_have_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All are known before anything is set up."""
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    shown = capsys.readouterr().out
    for section, contestants in (("output", OUTPUT), ("count", COUNT)):
        names = {one.name for one in contestants}
        assert names == TAKE_PART[section]
        assert all(f"\n      {name} " in shown for name in names)


def test_a_function_is_compared_with_the_class_after_it() -> None:
    """It reaches the target within three hundredths of the class's rate."""
    found = {one.title: [Took(s, s)] for one, s in zip(FRONT, (1.02, 1.0, 1.1, 1.0), strict=True)}
    each, *_, batch = runs._pairs(FRONT, found)
    assert (each.what, each.reached) == (f"{FRONT[0].title} against StreamTask, by the clock", True)
    assert (batch.what, batch.reached) == (f"{FRONT[2].title} against BatchTask, by CPU", False)


def test_a_contestant_that_fails_leaves_the_rows_of_all_others() -> None:
    """Its row has the reason, what it had is kept, and it does not run again."""
    ours, function, quix = OUTPUT[:3]
    calls: list[str] = []

    def took(one: Contestant, command: Command) -> Took:
        calls.append(command(Input("", "", 1, work.Right()), "run")[0])
        if one == quix or (one == ours and len(calls) > 3):
            raise BenchmarkError("ended with exit code -11")
        return Took(1.0, 2.0)

    ready: dict[Contestant, Command] = {
        ours: lambda *_: ["ours"],
        function: lambda *_: ["function"],
        quix: lambda *_: ["quix"],
    }
    found: dict[str, list[Took]] = {}
    rows = runs._in_turns(ready, 3, took, found)
    first = next(rows)
    assert (first.what, first.has_failed, calls) == ("StreamTask, run 1", False, ["ours"])
    assert [(row.what, row.target) for row in rows if row.has_failed] == [
        ("Quix Streams, run 1", "ended with exit code -11"),
        ("StreamTask, run 2", "ended with exit code -11"),
    ]
    assert calls == ["ours", "function", "quix", "ours", "function", "function"]
    assert {title: len(took) for title, took in found.items()} == {ours.title: 1, function.title: 3}
    assert list(runs._ratios(OUTPUT, found)) == []


def test_a_start_that_is_in_what_a_run_took_is_left_out() -> None:
    """By the difference to a run over more records; a longer one that took less is none."""
    few, many = Took(5.0, 20.0), Took(6.5, 26.0)
    assert few.without_start(many, 4) == Took(0.5, 2.0)
    for longer in (Took(4.9, 26.0), Took(6.5, 20.0)):
        with pytest.raises(BenchmarkError, match="too few records"):
            few.without_start(longer, 4)


def test_a_program_that_fails_is_named_by_its_exit_code() -> None:
    """The last line of one that does not fail is what it took."""
    program = (
        "import sys; print('begins'); print('{\"s\": 2, \"cpu_s\": 3}'); sys.exit(int(sys.argv[1]))"
    )
    assert run_once([sys.executable, "-c", program, "0"]) == Took(2, 3)
    with pytest.raises(BenchmarkError, match="ended with exit code 7"):
        run_once([sys.executable, "-c", program, "7"])
