"""Runs one benchmark and prints its table."""

from __future__ import annotations

import importlib
import signal
import sys
import time
from collections.abc import Mapping
from types import FrameType

from flights_demo.screen import DemoError

from benchmarks import recorded
from benchmarks.options import COMPARED, REPEATED, SECTIONS, parse_arguments
from benchmarks.recorded import Recorded, figures_of
from benchmarks.report import BenchmarkError, Row, print_machine, print_section
from homeport.config.errors import HomeportError
from homeport.local_cluster.errors import ClusterError
from pages_check import figures_page


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Exit code: 0 when everything was measured, whatever the figures."""
    options = parse_arguments(sys.argv[1:])
    signal.signal(signal.SIGTERM, _interrupt)
    found: dict[str, tuple[str, list[Row]]] = {}
    try:
        commit = _commit() if options.record else ""
        begin = print_machine()
        for section in options.sections:
            module = SECTIONS[options.name][section]
            measure = importlib.import_module(f"benchmarks.{options.name}.{module}")
            title, rows = measure.SECTIONS[section]
            arguments = [options.runs] if options.name in REPEATED else []
            if options.name == COMPARED:
                arguments += [options.records, options.contestants]
            found[section] = title, print_section(title, rows(*arguments), plot=options.plot)
    except (BenchmarkError, ClusterError, DemoError, HomeportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    end = print_machine()
    if any(row.has_failed for _, rows in found.values() for row in rows):
        if options.record:
            print("error: nothing is recorded, as a figure is missing", file=sys.stderr)
        return 1
    if options.record:
        _record(options.name, found, commit, (begin, end))
    return 0


def _commit() -> str:
    """Return the commit that the figures are of; BenchmarkError where they cannot be kept."""
    recorded.read(recorded.ROOT)
    return recorded.commit_of(recorded.ROOT)


def _record(
    name: str, found: Mapping[str, tuple[str, list[Row]]], commit: str, machine: tuple[str, str]
) -> None:
    """Keep the figures, and write their pages."""
    command = " ".join(["scripts/bench", *(word for word in sys.argv[1:] if word != "--record")])
    date = time.strftime("%Y-%m-%d", time.gmtime())
    runs = {
        section: Recorded(title, command, date, commit, *machine, figures_of(rows))
        for section, (title, rows) in found.items()
    }
    recorded.keep(name, runs, recorded.ROOT)
    figures_page.write()
    print(f"recorded in {recorded.NAME} and {figures_page.INDEX}")


if __name__ == "__main__":
    sys.exit(main())
