"""The options of scripts/bench. Needs no installed package: it runs before the set-up."""

from __future__ import annotations

import argparse
import sys

SECTIONS: dict[str, dict[str, str]] = {
    "coordinator": {"model": "model", "bootstrap": "bootstrap", "http": "http"},
    "allocator": {name: name for name in ("placement", "mixed", "keeper", "adoption")},
    "commit": {
        **dict.fromkeys(("hot", "distinct", "modes"), "runs"),
        **dict.fromkeys(("keys", "opening"), "growing"),
    },
    "latency": {"visible": "runs"},
    "throughput": dict.fromkeys(("output", "count", "front"), "runs"),
    "pipeline": {
        name: name for name in ("planning", "functions", "leaving", "parsing", "wide", "joining")
    },
    "restore": {"full": "full"},
    "startup": dict.fromkeys(("task", "pipeline"), "runs"),
    "footprint": dict.fromkeys(("task", "pipeline", "further", "tasks"), "runs"),
    "adjunct": {"bootstrap": "bootstrap", "join": "join", "swap": "swap"},
    "failover": {**dict.fromkeys(("small", "large", "home"), "rows"), "mixed": "mixed"},
    "rescale": dict.fromkeys(("task", "mixed", "pipeline"), "rows"),
    "standalone": {name: name for name in ("plan", "fleet", "sigkill", "rolling")},
}
"""{benchmark: {section: module with its title and rows}}, in their order."""
REPEATED = {"failover": 5, "throughput": 3, "startup": 5}
"""{benchmark that measures the same again and again: how often, unless ``--runs`` says it}."""
COMPARED = "throughput"
CONTESTANTS = ("ours", "class", "quix", "spark")
_NAMED = ("kafka-streams", "flink", "bytewax", "faust")
"""These take part only where they are named: they fetch more, or take minutes."""
_ALL_CONTESTANTS = (*CONTESTANTS, *_NAMED)
TAKE_PART = {
    "output": {"ours", "quix", *_NAMED},
    "count": {"ours", "quix", "spark", *_NAMED},
    "front": {"class"},
}
"""{section of throughput: the contestants that have its work}."""
_RECORDS = 1_000_000

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
    mixed      10,000 mixed containers of 10 tasks, each with a standby, on 1,000 such hosts: they
               start, get standbys, and lose 100 hosts; the JobModels and their records are real
    keeper     1,000 launchers that renew their leases once a second: CPU of the keeper's server
    adoption   SIGKILL of the driver under 1,000 simulated launchers: how soon its successor has
               adopted all, and what restarts (starts a Kafka on loopback; no YARN)
  commit       (each starts a Kafka on loopback; no YARN, no Spark; the container's data path is
               whole: fetch, Arrow, task, changelog, output, checkpoint, transaction, RocksDB)
    hot        1,000,000 JSON records of 10,000 keys, summed per key
    distinct   1,000,000 keys in random order, each read from RocksDB, changed and written
    modes      what task.exactly.once=true costs against false
    keys       a change of a key in a store of 100,000 to 20,000,000 (without Kafka; 5 minutes)
    opening    1,000 stores that are there already (without Kafka)
  restore
    full       1,000,000 x 1 KiB in random order from a Kafka on loopback into an empty store,
               against a loop that puts record by record and one that discards; where the time goes;
               two stores at once; memory of a worker; a store of 1 GB that comes home
  adjunct      (stores of 1,000,000 x 200 B)
    bootstrap  a store filled from a Kafka on loopback, against a full restore of the same topic
    join       get_arrow against a store that is served: of few keys again and again, and of each
               key once with nothing kept
    swap       how long the loop stands still while versions are built and take their places
  latency      (starts a Kafka on loopback; no YARN)
    visible    from a record's send until a reader of committed records has it, at 20 and 1,000
               records a second, with and without a pipeline; CPU of the container and its Spark
  throughput   (each starts a Kafka on loopback; no YARN; what others need is fetched once)
    output     a running sum per key, sent for each record: ours are a StreamTask and a function
    count      JSON parsed and filtered, then counted per key: ours are a BatchTask alone, and after
               a Spark pipeline; median and range of --runs runs in turns, CPU of all processes,
               each result checked
    front      the same work by functions of a job in Python, beside a StreamTask and a BatchTask
    contestants of output and count; all but the first three have to be named:
      ours           this clone
      quix           Quix Streams
      spark          Spark Structured Streaming (count)
      kafka-streams  Kafka Streams, in Java
      flink          Flink SQL by PyFlink, whose packages take 0.8 GB
      bytewax        Bytewax, whose output is at-least-once
      faust          Faust, which takes minutes for a million records
    kafka-streams and flink have their start in what they measure: they run over --records records
    and over four times as many, and the difference counts
  pipeline     (each starts a Spark; no Kafka; a plan that lasts, as a container has by default)
    planning   a batch of 20 to 100,000 records, by a plan that lasts and by one of its own
    functions  a function in Python of a pipeline, over pandas, over Arrow and row by row, beside
               Spark's own: rows a second, CPU and memory of the workers
    leaving    rows of a pipeline that leave by themselves: JSON that Spark writes, or Python
    parsing    1,000,000 JSON records through a pipeline that filters them: its from_json done
               by Spark alone, and read before Spark; CPU of both processes
    wide       300,000 JSON records of 20 fields, of which a pipeline reads two: only these made
               columns, and all; CPU of both processes
    joining    JSON parsed and filtered, without a join and with a left join with an adjunct store
               of 10,000 and 100,000 entries; what a change of the store adds
  startup      (each starts a YARN of three nodes and a Kafka on loopback; median and range of
               --runs starts of a new job whose input waits, in all and step by step)
    task       from the call of run-job to the first committed output, without a pipeline
    pipeline   the same with a pipeline in Spark
  footprint    (each starts a YARN of one node and a Kafka on loopback; memory, threads and CPU of
               each process of a job that has nothing to do, over a minute)
    task       one container without a pipeline
    pipeline   one container with a pipeline in Spark
    further    four containers without a pipeline
    tasks      1,000 tasks in one container without a pipeline
  failover     (each starts a YARN of three nodes and a Kafka on loopback; lease 3 s, a pipeline in
               Spark, a state of values of 1 KiB that change all the while; median and range of
               --runs failures, in all and phase by phase)
    small      SIGKILL of all that runs on the host of the active container, until its successor
               has committed its first output: without a standby, with one, with one that is warmed
               up; state of 10 MB
    large      the same with a state of 1 GB
    home       SIGKILL of the container's process: with a pipeline, with one that is warmed up,
               without
    mixed      SIGKILL of all that runs on a host of mixed containers, until all of its tasks have
               committed output in the processes that run; state of 10 MB, with a pipeline and
               without; memory that YARN has granted, beside that with standby containers
  rescale      (each starts a YARN and a Kafka on loopback; a job of 8 tasks at work gets 5
               containers instead of 3 by job.container.count, then 3 again; what a reader of
               committed outputs notices, where the time goes, and whether each count is right)
    task       no pipeline, 60,000 keys of each task, a host for each container
    mixed      the same with mixed containers, where moved tasks are read ahead
    pipeline   a pipeline in Spark, a small state, three hosts that have room
  standalone   (no YARN, no Spark)
    plan       the next version of 10,000 tasks on 200 processors: JobModel and the leader's step,
               without standbys and with one of each task
    fleet      50 light processors on a ZooKeeper of this run: they begin, one leaves, the leader
               leaves; from the debounce time's end until all work
    sigkill    (starts a Kafka and a ZooKeeper on loopback) SIGKILL of one of three processors until
               all of its tasks have committed elsewhere, phase by phase, without standbys and with
    rolling    (the same two) ten processors restart one after the other: tasks that move, how long
               each stands still
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
  scripts/bench failover --mixed --runs 10
  scripts/bench footprint --section task --record
  scripts/bench throughput --records 200000 --runs 1 --contestants ours,quix
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
        "--mixed",
        action="append_const",
        dest="sections",
        const="mixed",
        help="the same as --section mixed",
    )
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help="how often failover lets each configuration fail, throughput runs each contestant, and"
        f" startup starts a job (default: {', '.join(str(n) for n in REPEATED.values())})",
    )
    parser.add_argument(
        "--records",
        type=int,
        metavar="N",
        help=f"how many records throughput processes in a run (default: {_RECORDS:,})",
    )
    parser.add_argument(
        "--contestants",
        metavar="NAME,NAME",
        help=f"which of {', '.join(_ALL_CONTESTANTS)} take part in throughput (default:"
        f" {', '.join(CONTESTANTS)})",
    )
    _add_uses(parser)
    options = parser.parse_args(argv)
    _check(parser, options)
    known = SECTIONS[options.name]
    options.runs = options.runs or REPEATED.get(options.name)
    options.records = options.records or _RECORDS
    options.contestants = _named(options) or CONTESTANTS
    options.sections = tuple(s for s in known if s in (options.sections or _all(options)))
    return options


def _add_uses(parser: argparse.ArgumentParser) -> None:
    """Add what is done with the figures."""
    parser.add_argument(
        "--plot",
        action="store_true",
        help="show the rates of each section as bars too, and times phase by phase; of characters,"
        " as no plotting library is among what the project installs",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the figures of this run in the pages of docs/figures.md, with date, commit,"
        " machine and load; the clone has no uncommitted change",
    )


def _all(options: argparse.Namespace) -> list[str]:
    known = SECTIONS[options.name]
    if options.name != COMPARED:
        return list(known)
    return [section for section in known if TAKE_PART[section] & set(options.contestants)]


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    known = SECTIONS[options.name]
    for section in options.sections or ():
        if section not in known:
            parser.error(f"--section {section}: {options.name} has {', '.join(known)}")
    if options.runs is not None and options.name not in REPEATED:
        parser.error(f"--runs is for {', '.join(REPEATED)}; leave it out for {options.name}")
    for option in ("runs", "records"):
        number = getattr(options, option)
        if number is not None and number < 1:
            parser.error(f"--{option} = {number}: it must be at least 1")
    for option in ("records", "contestants"):
        if getattr(options, option) is not None and options.name != COMPARED:
            parser.error(f"--{option} is for {COMPARED}; leave it out for {options.name}")
    for one in _named(options):
        if one not in _ALL_CONTESTANTS:
            parser.error(f"--contestants {one}: there are {', '.join(_ALL_CONTESTANTS)}")


def _named(options: argparse.Namespace) -> tuple[str, ...]:
    return tuple(options.contestants.split(",")) if options.contestants else ()


if __name__ == "__main__":
    parse_arguments(sys.argv[1:])
