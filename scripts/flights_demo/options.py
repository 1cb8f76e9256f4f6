"""The options of scripts/demo. Needs no installed package: it runs before the set-up."""

from __future__ import annotations

import argparse
import sys

FORMS = ("app", "stream-task", "batch-task", "sql-and-task", "sql-alone")
"""The flights job in other words: the names of its files in examples/flights."""
WITHOUT_PIPELINE = frozenset({"app", "stream-task", "batch-task"})
APP = "app"
"""The form that is one Python file."""
ALONE = "sql-alone"
"""The form without a task, and so without a store."""

_DESCRIPTION = """\
Starts a local YARN (3 nodes) and Kafka, runs the flights job in 3 containers until its input is
consumed, and compares every plane with the right answer, and the names of planes, airports and
airlines in every output; the airlines get new names in mid-run. Then stops the job in order,
submits it again, and shows that each container came home to its state. The cluster is taken down
at the end, after an error or Ctrl-C too. Exit code 0: all of that held.
"""

_EPILOG = """\
It takes 2 to 4 minutes on 2 cores, with --kill-loop or --living 5 to 9; the first time also what is
missing is made or fetched: .venv (about a minute), jars. Printed: progress, where each container
runs, what each store restored, seconds per phase, a verdict on each promise. Logs, also of a run
that failed, are below
${HOMEPORT_CACHE_DIR:-~/.cache/homeport}/clusters/demo-*/ until this clone's next run.

  scripts/demo --keep              then: scripts/dev-cluster down --name NAME, as it says
  scripts/demo --kill-container    a container dies in mid-run, nothing is lost or counted twice
  scripts/demo --standbys          a replica of each container, equal to it in the end
  scripts/demo --fail-host         a node loses power in mid-run; its containers go on elsewhere
  scripts/demo --moves             an operator moves a container, drains a host, upgrades the job
  scripts/demo --living            a job gets inputs, a schema, a host, a key, and is deleted
  scripts/demo --rescale           3 -> 5 -> 2 containers in mid-run
  scripts/demo --fail-host --mixed the tasks of a lost host go on in the processes that run
  scripts/demo --form app          the same job as one Python file
  scripts/demo --standalone        without YARN: processors under ZooKeeper, one dies, all restart
  scripts/demo --kill-loop 7       twenty SIGKILLs under two jobs, and each record counts once
"""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """The options; argparse ends the program where they are wrong."""
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave cluster and job up, and say how to reach them"
    )
    parser.add_argument(
        "--rate", type=int, metavar="N", help="pace the producer, in records per second"
    )
    parser.add_argument(
        "--form",
        choices=FORMS,
        help="the same job written in another way: one Python file, a StreamTask, a BatchTask"
        " without a pipeline, a task after SQL, or one statement of SQL alone (default: a task"
        " after a pipeline)",
    )
    # Runs in the client of a cluster that is up (docker/demo), with the archive of its environment.
    parser.add_argument("--attached", metavar="ARCHIVE", help=argparse.SUPPRESS)
    _add_what_befalls(parser)
    options = parser.parse_args(argv)
    _refuse_beside_others(parser, options)
    _refuse_what_does_not_combine(parser, options)
    _refuse_forms(parser, options)
    options.standbys |= options.fail_host or options.mixed
    return options


_BEFALLS = {
    "kill-container": (
        "SIGKILL one stream container after its third transaction; the result stays exact"
    ),
    "chaos": (
        "ten faults and more, by a schedule that this number reproduces: containers, "
        "launchers, nodes, the AM are killed or stand still; then calm, and the result is "
        "exact; with --standalone eight and more, of processors and of ZooKeeper's server"
    ),
    "kill-loop": (
        "twenty times SIGKILL of a container or a launcher, by a schedule that this number "
        "reproduces, some of them while others recover, of the flights job and of a job beside "
        "it that counts its records; then calm, and both results are exact"
    ),
    "rescale": (
        "3 containers become 5, then 2, by one key and while they work; only whose tasks change "
        "begin again, in the processes that they have. The driver is killed in the middle of the "
        "second change, and the result is exact"
    ),
    "standbys": (
        "each container has a standby on another host; once all is consumed each of them holds "
        "what its active does, key by key, and is behind by nothing"
    ),
    "fail-host": (
        "with standbys and a lease of 3 s, everything on a node is killed that hosts an active "
        "container; a timeline shows how it took its standby's place, the node comes back, and "
        "the result is exact"
    ),
    "moves": (
        "in mid-run, by the commands of homeport, a container is moved warm, a host is drained "
        "and taken back, and the job gets another package; the pause of each container is "
        "printed, and the result is exact"
    ),
    "living": (
        "while flights come, by the commands of homeport, the job gets an adjunct store and a "
        "further input, the summaries another schema, the cluster a host; it counts per airport "
        "too, gives the input up, and is deleted: results are exact, and nothing of it is left"
    ),
    "standalone": (
        "no YARN: three processors share the job by ZooKeeper; one is killed, one stands still "
        "beyond its session, one joins, all are restarted in turn, and the result is exact"
    ),
    "prewarm": "with --fail-host: the host of a standby has a Spark JVM ready for its active",
    "mixed": (
        "with --fail-host, --rescale, --chaos or --standbys: each container has standby tasks "
        "beside its active ones, in place of standby containers; tasks move between the processes "
        "that run"
    ),
}
"""{option: what befalls the job}; of ``_SEEDS`` each takes the seed of its schedule."""
_SEEDS = frozenset({"chaos", "kill-loop"})


def _add_what_befalls(parser: argparse.ArgumentParser) -> None:
    for name, text in _BEFALLS.items():
        if name in _SEEDS:
            parser.add_argument(f"--{name}", type=int, metavar="SEED", help=text)
        else:
            parser.add_argument(f"--{name}", action="store_true", help=text)


_WITH_MIXED = ("fail_host", "rescale", "chaos", "standbys")
_KILLING = ("chaos", "kill_container", "rescale")
_ALONE = (
    (
        "rescale",
        ("chaos", "kill_container"),
        "--rescale goes alone: leave out --chaos and --kill-container",
    ),
    ("rescale", ("standbys",), "--rescale goes alone: leave out --standbys"),
    ("chaos", ("kill_container",), "--chaos kills containers already: leave out --kill-container"),
    (
        "kill_loop",
        _KILLING,
        "--kill-loop goes alone: leave out --chaos, --kill-container and --rescale",
    ),
    (
        "fail_host",
        (*_KILLING, "kill_loop"),
        (
            "--fail-host is the only fault of its run: leave out --chaos, --kill-container,"
            " --kill-loop and --rescale"
        ),
    ),
    (
        "moves",
        (*_KILLING, "kill_loop", "fail_host"),
        (
            "--moves is of containers that nothing befalls: leave out --chaos, --fail-host,"
            " --kill-container, --kill-loop and --rescale"
        ),
    ),
    (
        "attached",
        (*_KILLING, "moves", "kill_loop"),
        "in containers: only --fail-host, --standbys, --mixed, --prewarm, --rate and --keep",
    ),
)
"""(option, those that it does not go with, the error)."""


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name)
    return value is not None and value is not False  # a seed may be 0


def _refuse_what_does_not_combine(
    parser: argparse.ArgumentParser, options: argparse.Namespace
) -> None:
    for option, others, remedy in _ALONE:
        if _is_given(options, option) and any(_is_given(options, other) for other in others):
            parser.error(remedy)
    if options.mixed and not any(_is_given(options, name) for name in _WITH_MIXED):
        parser.error(
            "--mixed goes with --fail-host, --rescale, --chaos or --standbys: give one too, or"
            " leave it out"
        )
    if options.mixed and options.prewarm:
        parser.error("--mixed has a Spark in each container already: leave out --prewarm")
    if options.prewarm and not options.fail_host:
        parser.error("--prewarm goes with --fail-host only: give that too, or leave it out")
    if options.rate is not None and options.rate < 1:
        parser.error(f"--rate = {options.rate}: it must be at least 1; leave it out for full speed")


_RUNS = {"standalone": (("form", "chaos"), ", or with --form or --chaos"), "living": ((), "")}
"""{option that is a run of its own: (those that go with it, the same in words)}."""


def _refuse_beside_others(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Argparse ends the program where other options are given beside a run of its own."""
    for run, (allowed, words) in _RUNS.items():
        others = vars(options).keys() - {run, *allowed}
        if _is_given(options, run) and any(_is_given(options, name) for name in others):
            parser.error(f"--{run} goes alone{words}: leave out the others")


def _refuse_forms(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Argparse ends the program where a form does not go with what is to happen."""
    if options.form == ALONE and (options.standbys or options.fail_host or options.mixed):
        parser.error("--form sql-alone has no state: leave out --standbys, --fail-host, --mixed")
    if options.form in WITHOUT_PIPELINE and options.prewarm:
        parser.error(f"--form {options.form} has no pipeline to prewarm: leave out --prewarm")
    if options.form == APP and options.moves:
        parser.error("--moves upgrades a folder of modules: leave out --form app")
    if options.form is not None and options.attached is not None:
        parser.error("in containers the job has its usual form: leave out --form")


if __name__ == "__main__":
    parse_arguments(sys.argv[1:])
