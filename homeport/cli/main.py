"""``homeport``: the operator's tool. Each sub-command is a module that is loaded when it is named.

Answers go to standard output, where they come from and warnings to standard error; an error is one
line and exit code 1.
"""

import difflib
import importlib
import os
import sys
from dataclasses import dataclass

import typer

import homeport
from homeport.cli import completion_command
from homeport.cli.formatting import table
from homeport.cli.usage import run_app, run_program
from homeport.config.errors import HomeportError

_HELP = frozenset({"--help", "-h", "help"})


@dataclass(frozen=True)
class Command:
    """A sub-command: the module and the name of its app, and what it does in one line."""

    place: str
    summary: str
    name: str = "app"

    @property
    def module(self) -> str:
        """Return the module, as it is imported."""
        return f"homeport.cli.{self.place}"

    def app(self) -> typer.Typer:
        """Import the module, and return the app."""
        app: typer.Typer = getattr(importlib.import_module(self.module), self.name)
        return app


COMMANDS = {
    "audit": Command(
        "job.audit_command", "show each change of a running job: by which operator, from where"
    ),
    "checkpoint": Command(
        "host.checkpoint_commands", "show how far a job has read its input, or set it"
    ),
    "clean": Command("host.clean_command", "remove state that a job left behind on this host"),
    "completion": Command(
        "completion_command", "print what makes bash, zsh or fish complete homeport"
    ),
    "config": Command(
        "job.config_commands", "show, compare and change a job's configuration; list all keys"
    ),
    "coordinator-stream": Command(
        "job.stream_commands", "show the records of a job's coordinator stream, or follow them"
    ),
    "delete-job": Command(
        "yarn.delete_job_command",
        "end a job for good: its topics, directories and nodes; without --apply only show them",
    ),
    "docs": Command("host.docs_command", "print a page of the documentation of this version"),
    "doctor": Command(
        "yarn.doctor_command",
        "check this machine, Kafka and YARN for a job, and show what to change",
    ),
    "drain": Command("job.drain_command", "move all containers of a running job away from a host"),
    "explain": Command(
        "job.explain_command", "show where a processor is, why, and what it waits for"
    ),
    "job-model": Command(
        "job.job_model_command", "show which container has which tasks, inputs and changelogs"
    ),
    "json-schema": Command(
        "json_schema_command", "show the form of what a command prints with --json"
    ),
    "local": Command(
        "local.local_commands",
        "start, show and stop a Kafka and a YARN on this machine; break them",
    ),
    "locality": Command(
        "job.job_model_command", "show where containers and tasks last ran", "locality_app"
    ),
    "logs": Command("yarn.logs_command", "show the log of a container, or follow it"),
    "metrics-targets": Command(
        "yarn.metrics_targets_command",
        "show or serve where Prometheus finds the metrics of running jobs",
    ),
    "migrate": Command(
        "yarn.migrate_command", "let a stopped job go on standalone, or on YARN, with its state"
    ),
    "migrate-check": Command(
        "migrate_check_command", "show what becomes of a Samza job's configuration here, key by key"
    ),
    "move": Command("job.move_command", "move a container of a running job to another host"),
    "new": Command(
        "host.new_command", "make the folder of a new job: code, configuration and a test"
    ),
    "pack": Command("yarn.pack_command", "pack the environment that travels to the nodes"),
    "restart": Command("job.move_command", "restart a container of a running job", "restart_app"),
    "run-local": Command(
        "host.run_processor",
        "run a whole job on this machine, without YARN and ZooKeeper",
        "local_app",
    ),
    "run-processor": Command(
        "host.run_processor", "run one processor of a job, under ZooKeeper, without YARN"
    ),
    "state": Command(
        "yarn.state_convert_command", "list, read, check, rebuild and convert a job's state"
    ),
    "status": Command(
        "job.status_command", "show which containers do not run yet, why, and where the others run"
    ),
    "token": Command(
        "job.token_commands",
        "make, list and revoke the tokens of operators of a job; exchange the job's own",
    ),
    "upgrade": Command(
        "yarn.upgrade_command",
        "give a running job new code, container by container, and take it back",
    ),
    "what-if": Command(
        "job.drain_command",
        "show what would happen if hosts were lost; changes nothing",
        "what_if_app",
    ),
}


def help_text() -> str:
    """Return what the tool does, command by command."""
    rows = table([(name, command.summary) for name, command in COMMANDS.items()])
    return "\n".join(
        [
            "Usage: homeport COMMAND [OPTIONS]",
            "",
            "Looks at a job and its state, changes its configuration, moves and restarts its",
            "containers, runs jobs without YARN. --config-path names the job, as for run-job. The",
            "job answers, else the coordinator stream; the output says which. Secrets are masked.",
            "",
            *(f"  {row}" for row in rows),
            "",
            "homeport COMMAND --help says more, homeport --version which version this is.",
            "",
            "Exit codes: 0: done; 1: an error, in one line on standard error; 3: what was ordered",
            "may go on, but its end is not known; 130: interrupted.",
            "Where a command has other ones, its --help has them.",
        ]
    )


def run(arguments: list[str]) -> None:
    """Run the sub-command that ``arguments`` name; HomeportError where it fails."""
    if completion_command.VARIABLE in os.environ:
        summaries = {name: command.summary for name, command in COMMANDS.items()}
        completion_command.answer(summaries, lambda name: COMMANDS[name].app())
    if not arguments or arguments[0] in _HELP:
        print(help_text())
        return
    if arguments == ["--version"]:
        print(f"homeport {homeport.__version__}")
        return
    name = arguments[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        meant = f"did you mean {near[0]}?" if near else f"it has {', '.join(COMMANDS)}"
        raise HomeportError(f"homeport has no command {name!r}: {meant}; see homeport --help")
    run_app(COMMANDS[name].app(), arguments[1:], f"homeport {name}")


def main() -> None:
    """Run the command line; an error is one line on standard error and its exit code."""
    arguments = sys.argv[1:]
    run_program(lambda: run(arguments), " ".join(["homeport", *arguments[:1]]))


if __name__ == "__main__":
    main()
