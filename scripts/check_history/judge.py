"""The command line: reads, judges every job, says what it found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from check_history.incarnations import Incarnation
from check_history.reading import Job, UnreadableError, read_jobs
from check_history.rules import RULES
from check_history.run import Run

_SHOWN = 20
_TOLERANCE_MS = 1_000

_DESCRIPTION = """\
Judges a run by its history: all *.jsonl files below the directories, one directory per node (its
LOGGED_STORE_BASE_DIR, a job's folder in it, or job.history.dir). Says of each rule whether it held,
and where not. Exit code 0: all rules held; 1: one was broken, or there is nothing to judge.
"""

_EPILOG = """\
Unknown events are ignored. A killed process may leave a torn last line; any other damage is a
fault. Events of one machine are compared by its boot clock, which is exact; of several machines by
their wall clocks, within --tolerance-ms.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="check-history",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directories", metavar="DIR", nargs="+", type=Path)
    parser.add_argument(
        "--clock",
        choices=("auto", "boot", "wall"),
        default="auto",
        help="boot: all nodes are one machine; wall: they are not (default: find out)",
    )
    parser.add_argument(
        "--tolerance-ms",
        type=int,
        default=_TOLERANCE_MS,
        metavar="N",
        help=f"how far wall clocks may be apart (default: {_TOLERANCE_MS})",
    )
    parser.add_argument(
        "--allow-gaps",
        action="store_true",
        help="input topics are compacted or written in transactions: their offsets have gaps",
    )
    options = parser.parse_args(arguments)
    try:
        jobs = read_jobs(options.directories, options.clock, options.tolerance_ms)
    except UnreadableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    # Every job is judged and printed, even after a job that failed.
    verdicts = [_announce(Run.of(job, allow_gaps=options.allow_gaps)) for job in jobs]
    return 0 if all(verdicts) else 1


def _announce(run: Run) -> bool:
    """Print what was found about one job; whether all rules held."""
    print(_summary(run.job, run.incarnations))
    held = True
    for rule in RULES:
        faults = list(rule.judge(run))
        held &= not faults
        print(f"  {'BROKEN' if faults else 'held  '}  {rule.name}")
        for fault in faults[:_SHOWN]:
            print(f"            {fault}")
        if len(faults) > _SHOWN:
            print(f"            and {len(faults) - _SHOWN} more")
    print(f"  {'green: every rule held' if held else 'red: a rule was broken'}")
    return held


def _summary(job: Job, incarnations: Sequence[Incarnation]) -> str:
    transactions = [t for i in incarnations for t in i.transactions]
    committed = sum(t.committed is not None for t in transactions)
    hosts = sorted({event.host for event in job.events})
    clock = "one boot clock"
    if job.clock == "wall":
        clock = f"wall clocks, within {job.tolerance_ms} ms"
    processors = {incarnation.key[0] for incarnation in incarnations}
    return (
        f"job {job.name or '?'}: {len(job.events)} events in {job.files} files of "
        f"{', '.join(hosts) or 'no host'}, by {clock}; {len(processors)} processors, "
        f"{len(incarnations)} incarnations, {committed} transactions committed, "
        f"{len(transactions) - committed} of unknown outcome, {job.torn} torn last lines"
    )
