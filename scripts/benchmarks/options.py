"""The options of scripts/bench. Needs no installed package: it runs before the set-up."""

from __future__ import annotations

import argparse
import sys

SECTIONS = {
    "coordinator": ("model", "bootstrap", "http"),
    "allocator": ("placement", "keeper", "adoption"),
    "store": ("engine", "typed"),
    "commit": ("hot", "distinct", "modes"),
    "restore": ("full",),
    "failover": ("small", "large", "home"),
}
"""{benchmark: its sections, in their order}."""
REPEATED = ("failover",)
"""Benchmarks that measure the same again and again, as often as ``--runs`` says."""
_RUNS = 5

_DESCRIPTION = """\
Measures this clone on this machine and prints a table: what was reached, the target beside it, and
how busy the machine was. Times depend on the machine, so no time makes it fail: exit code 0, unless
something could not be measured. Every figure of a run is printed, none is left out.

benchmarks and their sections:
  coordinator
    model      the JobModel of 100,000 tasks in 10,000 containers, computed and serialised; tasks
               that 10 % more containers move, against the fewest that any assignment can move
    bootstrap  reading a coordinator stream of 200,000 records to its head, against a loop that
               reads the same records and does nothing with them (starts a Kafka on loopback)
    http       1,000 clients fetching a JobModel of 1,000 containers at once: whole, and each the
               part of its own container; memory of the server, also before slow readers
  allocator
    placement  10,000 containers with a standby each placed on 1,000 hosts that are simulated, then
               1,000 failures, then the loss of 100 hosts; each event with the check of its step
    keeper     1,000 launchers that renew their leases once a second: CPU of the keeper's server
    adoption   SIGKILL of the driver under 1,000 simulated launchers: how soon its successor has
               adopted all, and what restarts (starts a Kafka on loopback; no YARN)
  store
    engine     RocksDB and the engine in memory with 500,000 keys: writes, reads, scans
    typed      the KeyValueStore of user code on RocksDB: objects, batches and Arrow columns;
               read-modify-write on distinct and on hot keys, without changelog and transaction
  commit       (each starts a Kafka on loopback; no YARN, no Spark; the container's data path is
               whole: fetch, Arrow, task, changelog, output, checkpoint, transaction, RocksDB)
    hot        1,000,000 JSON records of 10,000 keys, summed per key
    distinct   1,000,000 keys in random order, each read from RocksDB, changed and written
    modes      what task.exactly.once=true costs against false
  restore
    full       1,000,000 x 1 KiB in random order from a Kafka on loopback into an empty store,
               against a loop that puts record by record and one that discards; where the time goes;
               two stores at once; memory of a worker; a store of 1 GB that comes home
  failover     (each starts a YARN of three nodes and a Kafka on loopback; lease 3 s, a pipeline in
               Spark, a state of values of 1 KiB that change all the while; median and range of
               --runs failures, in all and phase by phase)
    small      SIGKILL of all that runs on the host of the active container, until its successor
               has committed its first output: without a standby, with one, with one that is warmed
               up; state of 10 MB
    large      the same with a state of 1 GB
    home       SIGKILL of the container's process: with a pipeline, with one that is warmed up,
               without
"""

_EPILOG = """\
How soon a change of the configuration is visible at GET / is not measured here but held by the
tests of a live job.

  scripts/bench coordinator
  scripts/bench coordinator --section http --section model
  scripts/bench allocator
  scripts/bench commit --plot
  scripts/bench restore
  scripts/bench failover --section home --runs 10 --plot
"""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """``name`` and ``sections``; argparse ends the program where they are wrong."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", choices=tuple(SECTIONS), metavar="NAME", help="which benchmark")
    parser.add_argument(
        "--section",
        action="append",
        dest="sections",
        metavar="SECTION",
        help="only this section; may be given several times",
    )
    parser.add_argument(
        "--plot",
        action="store_true",
        help="show the rates of each section as bars too, and times phase by phase; of characters,"
        " as no plotting library is among what the project installs",
    )
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help=f"how often failover lets each configuration fail (default: {_RUNS})",
    )
    options = parser.parse_args(argv)
    known = SECTIONS[options.name]
    for section in options.sections or ():
        if section not in known:
            parser.error(f"--section {section}: {options.name} has {', '.join(known)}")
    if options.runs is not None and options.name not in REPEATED:
        parser.error(f"--runs is for {', '.join(REPEATED)}; leave it out for {options.name}")
    if options.runs is not None and options.runs < 1:
        parser.error(f"--runs = {options.runs}: it must be at least 1")
    options.runs = options.runs or _RUNS
    options.sections = tuple(s for s in known if s in (options.sections or known))
    return options


if __name__ == "__main__":
    parse_arguments(sys.argv[1:])
