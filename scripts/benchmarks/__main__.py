"""Runs one benchmark and prints its table."""

from __future__ import annotations

import importlib
import signal
import sys
from types import FrameType

from flights_demo.screen import DemoError

from benchmarks.options import COMPARED, REPEATED, SECTIONS, parse_arguments
from benchmarks.report import BenchmarkError, print_machine, print_section
from homeport.config.errors import HomeportError
from homeport.local_cluster.errors import ClusterError


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Exit code: 0 when everything was measured, whatever the figures."""
    options = parse_arguments(sys.argv[1:])
    signal.signal(signal.SIGTERM, _interrupt)
    print_machine()
    whole = True
    try:
        for section in options.sections:
            module = SECTIONS[options.name][section]
            measure = importlib.import_module(f"benchmarks.{options.name}.{module}")
            title, rows = measure.SECTIONS[section]
            arguments = [options.runs] if options.name in REPEATED else []
            if options.name == COMPARED:
                arguments += [options.records, options.contestants]
            whole &= print_section(title, rows(*arguments), plot=options.plot)
    except (BenchmarkError, ClusterError, DemoError, HomeportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print_machine()
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
