"""``homeport config``: get, show, set, diff, reference."""

import getpass
import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated

import typer

from homeport.cli.job.coordinator_stream_writer import (
    AtOnce,
    DryRun,
    Force,
    How,
    change_config,
    require_functions,
    require_one,
)
from homeport.cli.job.job_view import JobView, OpenJob, open_job
from homeport.cli.options import (
    AsJson,
    FromJob,
    Named,
    Overrides,
    ShowSecrets,
    described,
    indented_json,
    loaded,
    new_app,
    note,
    note_origin,
    warn,
)
from homeport.config.config import Config, masked
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.reference import ReferenceFormat, reference
from homeport.config.declarations.unknown_keys import meant_by
from homeport.config.errors import ConfigError
from homeport.config.printable import printable, printable_lines
from homeport.config.secret_names import shown_value
from homeport.config.settings.config_diff import ConfigDiff
from homeport.job_coordinator.kafka.topics import topics_of
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.model.wire_form import about

app = new_app("Shows, compares and changes a job's configuration; lists all keys.")

_SET_EPILOG = """\
\b
Examples:
  homeport config set job.container.count 5 --config-path=my.properties
  homeport config set job.container.count --delete --config-path=my.properties
  homeport config set my.password - --config-path=my.properties < file
  homeport config set task.inputs kafka.orders,kafka.plans --config-path=my.properties \\
    --also stores.plans.factory=rocksdb --also stores.plans.adstore.input=kafka.plans \\
    --also stores.plans.key.serde=string --also stores.plans.msg.serde=string
"""
_DIFF_EPILOG = """\
\b
Example, before a deployment:
  homeport config diff --config-path=my.properties --config=task.commit.ms=5000
"""
Values = Mapping[str, Annotated[str, about("the value of each key that is set")]]
Differences = Mapping[
    str,
    Annotated[
        Mapping[
            str,
            Annotated[
                tuple[str | None, str | None],
                about("of each key that differs: in force, and wanted; null: not set"),
            ],
        ],
        about("by what a change needs, such as live or restart"),
    ],
]
_TITLES = {
    "live": "taken by the running job at once",
    "retunes_containers": "taken by the running job and its running containers",
    "restarts_containers": "taken by the running job, whose containers restart",
    "needs_redeploy": "from the next deployment",
    "never_with_state": "refused: the job has state; run-job --reset-state begins from nothing",
    "unread": "read by no program",
}


@app.command("get", short_help="print the configuration in force")
@described(key=typer.Argument(help="One key; without it, all that are set."))
def get(
    *,
    key: str | None = None,
    job: OpenJob,
    as_json: AsJson = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Prints the configuration in force: the running job's, else the coordinator stream's.

    Of one key the value is printed, and where it is not set its default.
    """
    found = job.config(show_secrets=show_secrets)
    note_origin(job.origin)
    if key is None:
        lines = [f"{name}={value}" for name, value in found.items()]
        print(indented_json(dict(found)) if as_json else printable_lines(lines))
        return
    value = _value_of(found, key)
    print(json.dumps(value, ensure_ascii=False) if as_json else value)


@app.command("show", short_help="print the keys that a job's file gives")
@described(
    file=typer.Argument(help="The job's file, in the place of --config-path."),
    config_path="The job's file, Python or properties: a path or a file: URL.",
)
def show(
    file: str | None = None,
    *,
    config_path: str | None = None,
    config: Overrides = None,
    as_json: AsJson = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Prints the keys of the job's file, Python or properties, after --config and rewriters.

    It reads the file alone; `get` prints what is in force in the running job. Where functions of a
    Python file are missing, a warning names them.
    """
    path = file or config_path
    if path is None or (file and config_path):
        rule = "the job's file is required" if path is None else f"{file} names a file too"
        raise ConfigError("--config-path", config_path, rule, "write config show daily_totals.py")
    given = loaded(path, config)
    found = given if show_secrets else masked(given)
    lines = [f"{name}={value}" for name, value in found.items()]
    print(indented_json(dict(found)) if as_json else printable_lines(lines))
    try:
        require_functions(path, given)
    except ConfigError as error:
        warn([error])


def _value_of(config: Config, key: str) -> str:
    declared = keys.declared(key)
    name = key
    if declared is not None:
        name = declared.given(config, *(declared.parts_of(key) or ()))
    value = config.get(name)
    if value is not None:
        if name != key:
            note(f"set as {name}")
        return value
    if declared is not None and declared.fallback:
        note(f"not set: {declared.fallback} stands in for it")
        return _value_of(config, declared.fallback)
    if declared is None or not declared.default_text:
        meant = meant_by(key) if declared is None else None
        remedy = f"did you mean {meant}?" if meant else "homeport config get lists what is set"
        raise ConfigError(key, None, "the job does not set it, and it has no default", remedy)
    note("not set: this is the default")
    return declared.default_text


@app.command("set", short_help="change one key, or take a change back", epilog=_SET_EPILOG)
@described(
    key=typer.Argument(help="The key."),
    value=typer.Argument(help="Its new value; -: it is read from standard input."),
    delete="Take back what was set: the deployment's value stands.",
    also="A further key of the same change, KEY=VALUE; KEY alone takes it back. Repeat it.",
)
def set_(
    *,
    key: str,
    value: str | None = None,
    delete: bool = False,
    also: list[str] | None = None,
    job: Named,
    force: Force = False,
    at_once: AtOnce = False,
    dry_run: DryRun = False,
) -> None:
    """Changes one key of the job, as coordinator-stream-writer does, and says what that means.

    The value stands above the properties file, in later deployments too, until it is taken back by
    --delete. What would break a rule, or is read by no program, is refused before anything is
    written; which containers restart is printed before it is.
    """
    require_one("VALUE", key, value, "a value", delete=delete)
    parts = [text.partition("=") for text in also or ()]
    more = {name.strip(): text if equals else None for name, equals, text in parts}
    how = How(force, dry_run, at_once, more, partial(require_functions, job.path))
    given = job.config()
    if value == "-":
        change_config(given, key, _from_standard_input(key), how, is_typed=False)
    else:
        change_config(given, key, value, how)


def _from_standard_input(key: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"{key}: ")
    return sys.stdin.readline().removesuffix("\n")


@app.command("diff", short_help="compare a file with what is in force", epilog=_DIFF_EPILOG)
def diff(
    *,
    job: Annotated[JobView, FromJob(lambda named: open_job(named.config(topics_of)))],
    as_json: AsJson = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Compares what is in force with the properties file, by what each difference would need.

    In force is what the running job uses, else what the coordinator stream says. What was set by
    coordinator-stream-writer, or config set, counts as part of the file, above which it stands.
    """
    before = job.config(show_secrets=True)  # compared, not shown
    after = job.given.merged(ConfigManager(job.stream).written())
    note_origin(job.origin)
    found = ConfigDiff.between(before, after)
    shown = partial(_shown, show_secrets=show_secrets)
    changes: Differences = {
        group: {name: (shown(before, name), shown(after, name)) for name in names}
        for group, names in vars(found).items()
    }
    if as_json:
        print(indented_json(changes))
        return
    for group, title in _TITLES.items():
        if changes[group]:
            print(f"{title}:")
        for name, (old, new) in changes[group].items():
            print(printable(f"  {name}: {_text(old)} -> {_text(new)}"))
    if found.is_empty:
        print("no difference")


def _shown(config: Config, name: str, *, show_secrets: bool) -> str | None:
    value = config.get(name)
    return value if value is None or show_secrets else shown_value(name, value)


def _text(value: str | None) -> str:
    return "(not set)" if value is None else value


@app.command("reference", short_help="list every key there is")
@described(
    part=typer.Argument(help="Only keys whose names hold this text, such as retry."),
    form=typer.Option("--format", help="How the table is printed."),
)
def reference_(
    *, part: str = "", form: ReferenceFormat = ReferenceFormat.TEXT, as_json: AsJson = False
) -> None:
    """Lists every key: type, default, older names, meaning, and what a change means while it runs.

    Then the keys of Samza's that have no effect here, each with the reason. Needs no job.
    """
    table = reference(ReferenceFormat.JSON if as_json else form, part)
    if not table:
        raise ConfigError("PART", part, "no key's name holds this text", "see all without it")
    print(table)
