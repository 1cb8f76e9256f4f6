"""The command line: reads, judges every job, says what it found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from .reading import EVENTS, KINDS, TRANSACTIONS, Job, UnreadableError, read_jobs
from .rules import RULES
from .run import Incarnation, Run

_SHOWN = 20
_TOLERANCE_MS = 1_000
_NAMES = {EVENTS: "other events", TRANSACTIONS: "transactions"}

_DESCRIPTION = """\
Judges a run by its history: all *.jsonl files below the directories, one directory per node (its
LOGGED_STORE_BASE_DIR, a job's folder in it, or job.history.dir). Says of each rule whether it held,
and where not. Exit code 0: all rules held; 1: one was broken, or there is nothing to judge.
"""

_EPILOG = """\
Unknown events are ignored. A killed process may leave a torn last line; any other damage is a
fault, and so are lines that are missing. A history that was trimmed begins later, and a full disk
leaves a mark that lines are lost: what is left is judged. Events of one machine are compared by its
boot clock, which is exact; of several machines by their wall clocks, within --tolerance-ms.
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
    for line in _begins(run):
        print(f"  {line}")
    held, partial = True, 0
    for rule in RULES:
        faults, is_partial = list(rule.judge(run)), rule.is_partial(run)
        held &= not faults
        partial += is_partial
        sound = "in part" if is_partial else "held"
        print(f"  {'BROKEN' if faults else sound:<7} {rule.name}")
        for fault in faults[:_SHOWN]:
            print(f"            {fault}")
        if len(faults) > _SHOWN:
            print(f"            and {len(faults) - _SHOWN} more")
    in_part = f"; {partial} of them are judged by what is left" if partial else ""
    print(f"  {'green: every rule held' if held else 'red: a rule was broken'}{in_part}")
    return held


def _begins(run: Run) -> Iterator[str]:
    """Since when the history is there, by host and by task, where some of it was trimmed."""
    for folder in run.job.folders:
        hosts = sorted({e.host for e in run.job.events if e.path.parent == folder.path})
        since = [
            f"{_NAMES[kind]} after {_utc(folder.trimmed_ms[kind])}"
            for kind in KINDS
            if kind in folder.trimmed_ms
        ]
        if since:
            yield f"of {', '.join(hosts) or folder.path} there are only {', '.join(since)}"
    if TRANSACTIONS not in run.job.trimmed:
        return
    begins = {
        partition: (event, first)
        for incarnation in reversed(run.incarnations)
        for transaction in reversed(incarnation.transactions)
        for partition, first in transaction.first.items()
        if (event := transaction.committed) is not None
    }
    for partition, (event, first) in sorted(begins.items())[:_SHOWN]:
        yield f"{partition} is judged from offset {first}, {_utc(event.wall_ms)}"
    if len(begins) > _SHOWN:
        yield f"and {len(begins) - _SHOWN} more partitions"
    tasks = {task for i in run.incarnations if not i.is_standby for task in i.tasks}
    for task in sorted(tasks - {partition.rpartition(" / ")[0] for partition in begins})[:_SHOWN]:
        yield f"{task}: no transaction is left"


def _utc(wall_ms: int) -> str:
    moment = datetime.fromtimestamp(wall_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
