"""``homeport new``: a job that runs and whose test passes, to be changed into one's own."""

from __future__ import annotations

import keyword
import re
import sys
from importlib import resources
from pathlib import Path
from string import Template

import typer

from homeport.cli.options import described, new_app, note
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.system_stream import SystemStream

app = new_app("Makes the folder of a new job: code, configuration, a test and a README.")

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_TOPIC = re.compile(r"[A-Za-z0-9_-]+")
_SUMMARIES = {
    "task": "A running total of the amounts of each key.",
    "pipeline": "A running total of the amounts of each key; Spark reads the records.",
    "sql": "The records whose amount is large, as one SQL statement.",
}
_STORE = """\

stores.totals.factory=rocksdb
stores.totals.changelog={system}.{name}-totals-changelog
stores.totals.key.serde=string
stores.totals.msg.serde={serde}
"""


@app.command()
@described(
    name=typer.Argument(help="Of the job and of its folder, as in daily-totals."),
    task="A task that gets one record at a time (default).",
    pipeline="A Spark pipeline before a task that gets batches.",
    sql="One SQL statement, without a task.",
    source=typer.Option("--input", help="system.stream; default kafka.NAME-in."),
    target=typer.Option("--output", help="system.stream; default kafka.NAME-out."),
    brokers=typer.Option(
        "--brokers",
        envvar="HOMEPORT_BOOTSTRAP_SERVERS",
        help="Of Kafka, HOST:PORT; the variable is what `homeport local env` sets.",
    ),
)
def new(
    name: str,
    *,
    task: bool = False,
    pipeline: bool = False,
    sql: bool = False,
    source: str | None = None,
    target: str | None = None,
    brokers: str = "localhost:9092",
) -> None:
    """Makes the folder NAME, below the folder where the command runs.

    Run its test by `pytest` in it, and the job by the commands of its README.
    """
    kinds = [k for k, is_it in (("task", task), ("pipeline", pipeline), ("sql", sql)) if is_it]
    if len(kinds) > 1:
        raise HomeportError(f"--{kinds[0]} and --{kinds[1]} exclude each other: give one of them")
    kind = kinds[0] if kinds else "task"
    folder = Path(name)
    module = _module(name)
    given = _stream("--input", source or f"kafka.{name}-in")
    sent = _stream("--output", target or f"kafka.{name}-out")
    if given.system != sent.system:
        raise ConfigError(
            "--output",
            str(sent),
            f"its system is not {given.system!r}, that of the input",
            "name a stream of the same system; a second system can be added by hand",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError("NAME", name, "there is such a folder here", "give another name")
    files = _files(kind, name, module, given, sent.stream, brokers)
    for path, text in files.items():
        target_file = folder / path
        target_file.parent.mkdir(parents=True, exist_ok=True)
        target_file.write_text(text, encoding="utf-8")
        print(target_file)
    note(f"next: cd {name}; pytest; README.md says how to run the job")


def _module(name: str) -> str:
    """Return the name of the job's module, if job, topic and module can have it."""
    module = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(module):
        rule = "a name has lower-case letters and digits, in parts joined by - or _"
        raise ConfigError("NAME", name, rule, "write it as in daily-totals")
    if module in sys.stdlib_module_names or module in {"homeport", "package", "tests"}:
        raise ConfigError("NAME", name, "Python has a module of that name", "give another name")
    return module


def _stream(option: str, text: str) -> SystemStream:
    stream = SystemStream.parse(text)
    if stream is None or not _TOPIC.fullmatch(stream.system) or not stream.stream:
        raise ConfigError(option, text, "it must have the form system.stream", "as in kafka.orders")
    return stream


def _files(
    kind: str, name: str, module: str, given: SystemStream, output: str, brokers: str
) -> dict[str, str]:
    """Return {path in the folder of the job: text}."""
    suffix = "sql" if kind == "sql" else "py"
    values = {
        "name": name,
        "module": module,
        "code": f"{module}.{suffix}",
        "summary": _SUMMARIES[kind],
        "system": given.system,
        "input": given.stream,
        "to": "task.pipeline.output" if kind == "sql" else "task.outputs",
        "output": output,
        "brokers": brokers,
        "work": _work(kind, module, given),
        "memory": "512" if kind == "task" else "1536",
    }
    folder = resources.files("homeport.cli.host") / "templates"
    sources = {
        f"{name}.properties": ("common", "job.properties"),
        "README.md": ("common", "README.md"),
        "pytest.ini": ("common", "pytest.ini"),
        f"package/{module}.{suffix}": (kind, f"job.{suffix}"),
        f"tests/test_{module}.py": (kind, "test_job.py"),
    }
    found = {}
    for path, (of_kind, source) in sources.items():
        text = (folder / of_kind / f"{source}.template").read_text(encoding="utf-8")
        found[path] = Template(text).substitute(values)
    if kind != "sql":
        serde = "json" if kind == "task" else "double"
        store = _STORE.format(system=given.system, name=name, serde=serde)
        found[f"{name}.properties"] += store
    return found


def _work(kind: str, module: str, given: SystemStream) -> str:
    """Return the keys that declare what is done with the records."""
    serdes = f"systems.{given.system}.streams.{given.stream}.samza"
    if kind == "sql":
        return f"task.pipeline.sql=file:{module}.sql"
    if kind == "pipeline":
        return f"task.pipeline.class={module}:parse\ntask.class={module}:RunningTotal"
    return "\n".join(
        [
            f"task.class={module}:RunningTotal",
            f"{serdes}.key.serde=string",
            f"{serdes}.msg.serde=json",
        ]
    )
