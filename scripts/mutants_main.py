"""Small changes of our own modules, each of which some unit test should notice. See --help."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mutation import recording, results, trial
from mutation.mutants import Mutant
from mutation.recording import CODE, ROOT, Recorded
from mutation.results import Module
from mutation.run import Runner
from mutation.sparing import Search, delete, mirrored

_ABOUT = """\
Changes modules in small ways, one change (a mutant) at a time, and runs the unit tests and
transcripts that reach the changed lines. A mutant that no test notices shows a rule that no test
holds, or a change that makes no difference. docs/mutation.md lists those that are known and why
they stay."""

_MORE = """\
Mutants: comparisons and their boundaries, and / or / not, sums, numbers, True and False, conditions
always or never true, removed calls, assignments to attributes, raises and yields, None for what is
returned, break and continue, dropped keyword arguments. None in text, types, logs and errors.

The first run records which tests run which lines and how long they take (some minutes). Record
again what you have written or changed: scripts/mutants --record tests/unit/x/test_y.py. Each mutant
is tried in a fork of a warm process, in memory: no file of the tree is changed.

What became of each mutant is kept in build/mutation, for as long as its module is as it was. A run
that was interrupted is gone on with by the same command. --again tries those once more that were
not noticed, after tests have been written. --sample tries some of them only, drawn by --seed.

--spare-tests looks for tests of one folder that take no branch and notice no mutant alone; tests of
rules, refusals, tables and whole enumerations, and those that a page names, stay. It records the
folder by itself, and tries each mutant with the tests that stay, then with the others.

Exit code: 0 if all that were tried are noticed, or the search for tests has ended; 1 if some are
not, or it was interrupted; 2 for a wrong option."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/mutants",
        description=_ABOUT,
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = "a module of ours, or a folder of them, such as job_coordinator/metadata"
    parser.add_argument("paths", nargs="*", metavar="MODULE_OR_FOLDER", help=what)
    what = "only this many mutants, of all that are not tried yet"
    parser.add_argument("--sample", type=_count, metavar="N", help=what)
    what = "which sample (default 1)"
    parser.add_argument("--seed", type=int, default=1, metavar="N", help=what)
    what = "how many are tried at a time (default: one per processor)"
    parser.add_argument("--jobs", type=_count, default=os.cpu_count() or 1, metavar="N", help=what)
    what = "how long the tests of one mutant may take (default 15); the slowest beyond are not run"
    parser.add_argument("--seconds", type=_count, default=15, metavar="N", help=what)
    what = "those that were not noticed are tried once more, and no others"
    parser.add_argument("--again", action="store_true", help=what)
    what = "try nothing, and print what is known"
    parser.add_argument("--report", action="store_true", help=what)
    what = "the paths are of tests, which are recorded again (default: all that are recorded)"
    parser.add_argument("--record", action="store_true", help=what)
    what = "the path is a folder of tests/unit: list its tests that may go"
    parser.add_argument("--spare-tests", action="store_true", help=what)
    what = "with --spare-tests: delete these tests, and the helpers that only they use"
    parser.add_argument("--write", action="store_true", help=what)
    return parser


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def modules_of(paths: Sequence[str]) -> list[Path]:
    """The modules at and below these paths, in order, each once; SystemExit where one is not ours.

    A path is taken from the root of the tree.
    """
    found: dict[Path, None] = {}
    for text in paths:
        path = (ROOT / text).resolve()
        is_ours = any(path.is_relative_to(ROOT / folder) for folder in CODE)
        if not is_ours or not path.exists() or (path.is_file() and path.suffix != ".py"):
            ours = ", ".join(CODE)
            raise SystemExit(f"error: {text}: it is no module and no folder of {ours}")
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        found.update(dict.fromkeys(f for f in files if f.read_bytes().strip()))
    return list(found)


def chosen(
    modules: Sequence[Module], *, again: bool, sample: int | None, seed: int
) -> list[tuple[Module, Mutant]]:
    """The mutants to be tried, or a sample of them, in the order of the tree.

    Those that were not tried yet; ``again``: those that were not noticed.
    """
    due = [(m, u) for m in modules for u in (m.left() if again else m.untried())]
    if sample is not None and sample < len(due):
        places = random.Random(seed).sample(range(len(due)), sample)  # noqa: S311 - no secret
        due = [due[place] for place in sorted(places)]
    return due


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGTERM too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _try(work: Sequence[tuple[Module, Mutant]], jobs: int, budget_s: float) -> None:
    if not recording.is_recorded():
        print("recording which tests run which lines; this takes some minutes", flush=True)
        recording.record(())
    recorded = Recorded.read()
    print(f"{len(work)} mutants, {jobs} at a time", flush=True)
    trial.prepare(sorted({test.partition("::")[0] for test in recorded.seconds}))
    runner = Runner(recorded, jobs, budget_s)
    runner.require_sound(work)
    runner.try_all(work)


def _spare(options: argparse.Namespace) -> int:
    folder = options.paths[0].rstrip("/")
    modules = modules_of([mirrored(folder)])
    try:
        with _interruptible():
            search = Search.begun(folder)
            reached = search.reached(modules)
            work = chosen(reached, again=False, sample=options.sample, seed=options.seed)
            figures = search.judge(work, options.jobs, options.seconds)
    except KeyboardInterrupt:
        print("interrupted; the search has to begin again", flush=True)
        return 1
    print("\n".join(["", *search.report(), *figures]))
    if options.write:
        delete(search.spare)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Exit code: see --help."""
    options = _parser().parse_args(arguments)
    if options.record:
        return recording.record(options.paths)
    if options.write and not options.spare_tests:
        _parser().error("--write goes with --spare-tests")
    if options.spare_tests:
        if len(options.paths) != 1:
            _parser().error("--spare-tests: name one folder of tests/unit")
        return _spare(options)
    modules = [Module.read(path) for path in modules_of(options.paths)]
    if not modules:
        _parser().error("name a module or a folder")
    work = chosen(modules, again=options.again, sample=options.sample, seed=options.seed)
    if work and not options.report:
        try:
            with _interruptible():
                _try(work, options.jobs, options.seconds)
        except KeyboardInterrupt:
            print("interrupted; the same command goes on with it", flush=True)
    print("\n".join(["", *results.table(modules), "", *results.survivors(modules)]))
    return 1 if any(module.left() for module in modules) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
