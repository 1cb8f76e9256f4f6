"""Set-up of this clone, then the requested command. Run by scripts/setup.sh."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType

from local_setup.environment import VENV, ensure
from local_setup.prerequisites import WANTED
from local_setup.progress import Progress, SetupError

_ABOUT = """\
Makes what the commands of this clone need, or finds it made: the virtual environment .venv with the
versions of scripts/constraints.txt, homeport in it, and on request Java, Maven and the Spark
class-data archive. Safe to repeat and to interrupt. Takes about a minute the first time, well
under a second after that. Progress goes to stderr."""


_NEEDS = ("java", "spark", *(need for need in WANTED if need != "compiler"))


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    own, command = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        own, command = arguments[:at], arguments[at + 1 :]
    parser = argparse.ArgumentParser(
        prog="scripts/setup.sh",
        usage=f"%(prog)s [--with {'|'.join(_NEEDS)}]... [-- COMMAND [ARGUMENT]...]",
        description=_ABOUT,
        epilog="COMMAND is looked for in .venv/bin first, and replaces this process.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--with",
        dest="needs",
        action="append",
        choices=_NEEDS,
        default=[],
        help="java: Java 17, Maven and libcrypt.so.1 too; "
        "spark: those and the class-data archive that makes Spark sessions start fast; "
        "network: iproute2 and iptables, if they can be had, for networks that tests break; "
        "docker: a Docker engine with compose, if it can be had, for clusters in containers; "
        "browser: Chromium, if it can be had, for tests of the dashboard; "
        "shells: zsh and fish, if they can be had, for tests of completion",
    )
    return parser.parse_args(own), command


def _run(command: list[str], env: dict[str, str]) -> None:
    """Replace this process by ``command``."""
    program = VENV / "bin" / command[0]
    if program.is_file():
        command = [str(program), *command[1:]]
    os.environ.update(env)
    try:
        os.execvp(command[0], command)  # noqa: S606 - becoming the command is the purpose
    except OSError as error:
        raise SetupError(f"{command[0]} cannot be started: {error.strerror}") from error


def _ended(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def main() -> int:
    """Exit code of the set-up alone; a command given takes this process over instead."""
    options, command = _parse(sys.argv[1:])
    before = {number: signal.signal(number, _ended) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        java, spark = (need in options.needs for need in ("java", "spark"))
        wanted = [need for need in WANTED if need in options.needs]
        env = ensure(Progress(), java=java, spark=spark, wanted=wanted)
        for number, handler in before.items():
            signal.signal(number, handler)
        if command:
            _run(command, env)
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the next run makes the rest", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
