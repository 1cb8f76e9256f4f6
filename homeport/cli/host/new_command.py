"""``homeport new``: a job that runs and whose test passes, to be changed into one's own."""

import json
import keyword
import re
import sys
from collections.abc import Mapping
from importlib import resources
from importlib.machinery import PathFinder
from pathlib import Path
from string import Template

import typer

from homeport.cli.options import described, new_app, note
from homeport.config.declarations.system_keys import BROKERS_VARIABLE
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.system_stream import SystemStream, is_topic_name

app = new_app("Makes the folder of a new job: its code, a test and a README.")

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_TOPIC = re.compile(r"[A-Za-z0-9_-]+")
_SYSTEM = "kafka"
_OWN_MODULES = frozenset({"homeport", "package", "tests", "conftest"})
_SUMMARIES = {
    "task": "A running total of the amounts of each key.",
    "batch": "A running total of the amounts of each key, added up over Arrow tables.",
    "pipeline": "A running total of the amounts of each key; Spark reads the records.",
    "sql": "The records whose amount is large, as one SQL statement.",
}
_IN_PROPERTIES = ("task", "pipeline", "sql")
_STORE = """\

stores.totals.factory=rocksdb
stores.totals.changelog={system}.{name}-totals-changelog
stores.totals.key.serde=string
stores.totals.msg.serde={serde}
"""


@app.command()
@described(
    name=typer.Argument(help="Of the job and of its folder, as in daily-totals."),
    example="An example in place of a new job: flights, or observability for metrics and alerts.",
    task="A function or task that gets one record at a time (default).",
    batch="A function that gets Arrow tables.",
    pipeline="A Spark pipeline before a function or task.",
    sql="One SQL statement, without a task.",
    properties="Task class and properties file, with Samza's keys, in place of one Python file.",
    source=typer.Option("--input", help="Topic, or system.stream; default NAME-in."),
    target=typer.Option("--output", help="Topic, or system.stream; default NAME-out."),
    brokers=typer.Option(
        "--brokers",
        help="Of Kafka, HOST:PORT; default: $HOMEPORT_BOOTSTRAP_SERVERS where the job runs.",
    ),
)
def new(  # noqa: PLR0913 - each is an option of the command
    name: str = "",
    *,
    example: str | None = None,
    task: bool = False,
    batch: bool = False,
    pipeline: bool = False,
    sql: bool = False,
    properties: bool = False,
    source: str | None = None,
    target: str | None = None,
    brokers: str | None = None,
) -> None:
    """Makes the folder NAME, by default that of the example, below where the command runs.

    Run its test by `pytest` in it, and the job by the commands of its README.
    """
    if example is not None:
        _write(Path(name or example), _example(example))
        note(f"next: cd {name or example}; README.md has the next steps")
        return
    kind = _kind({"task": task, "batch": batch, "pipeline": pipeline, "sql": sql})
    if properties and kind not in _IN_PROPERTIES:
        raise HomeportError(f"--{kind} and --properties exclude each other: give one of them")
    module = _module(name)
    given = _stream("--input", source or f"{name}-in")
    sent = _stream("--output", target or f"{name}-out")
    if given.system != sent.system:
        rule = f"its system is not {given.system!r}, that of the input"
        remedy = "name a stream of the same system; a second system can be added by hand"
        raise ConfigError("--output", str(sent), rule, remedy)
    values = {
        "name": name,
        "module": module,
        "summary": _SUMMARIES[kind],
        "system": given.system,
        "input": given.stream,
        "output": sent.stream,
    }
    make = _in_properties if properties else _in_python
    _write(Path(name), make(kind, values, brokers))
    note(f"next: cd {name}; pytest; README.md shows how to run the job")


def _example(name: str) -> dict[str, str]:
    examples = Path(str(resources.files("homeport"))) / "examples"
    known = sorted(folder.name for folder in examples.iterdir())
    if name not in known:
        raise ConfigError("--example", name, "there is no such example", f"{' or '.join(known)}")
    files = (path for path in sorted((examples / name).rglob("*")) if path.is_file())
    return {
        str(path.relative_to(examples / name)): path.read_text(encoding="utf-8")
        for path in files
        if path.parent.name != "__pycache__"
    }


def _kind(flags: Mapping[str, bool]) -> str:
    kinds = [kind for kind, is_given in flags.items() if is_given]
    if len(kinds) > 1:
        raise HomeportError(f"--{kinds[0]} and --{kinds[1]} exclude each other: give one of them")
    return kinds[0] if kinds else "task"


def _write(folder: Path, files: Mapping[str, str]) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError("NAME", str(folder), "there is such a folder here", "give another name")
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(file)


def _module(name: str) -> str:
    if not name:
        raise ConfigError("NAME", None, "it names the job and its folder", "give one: daily-totals")
    module = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(module):
        rule = "a name has lower-case letters and digits, in parts joined by - or _"
        raise ConfigError("NAME", name, rule, "write it as in daily-totals")
    if _is_taken(module):
        raise ConfigError("NAME", name, "Python has a module of that name", "give another name")
    return module


def _is_taken(module: str) -> bool:
    """Return whether a module that is there already has the name: the job would hide it."""
    if module in sys.stdlib_module_names or module in _OWN_MODULES:
        return True
    # A folder from which the command happens to run is none of Python's.
    path = [folder for folder in sys.path if folder and Path(folder).resolve() != Path.cwd()]
    return PathFinder.find_spec(module, path) is not None


def _stream(option: str, text: str) -> SystemStream:
    stream = SystemStream.parse(text if "." in text else f"{_SYSTEM}.{text}")
    if stream is None or not _TOPIC.fullmatch(stream.system) or not is_topic_name(stream.stream):
        rule = "it must be a topic, or have the form system.stream"
        raise ConfigError(option, text, rule, "as in kafka.orders")
    return stream


def _in_python(kind: str, values: Mapping[str, str], brokers: str | None) -> dict[str, str]:
    """Return {path in the folder of the job: text} of a job in one Python file.

    ConfigError: its streams have another system than such a job has.
    """
    if values["system"] != _SYSTEM:
        rule = f"a job in one Python file has the system {_SYSTEM!r}"
        remedy = "write the system too, as in kafka.web.clicks, or add --properties"
        raise ConfigError("--input", f"{values['system']}.{values['input']}", rule, remedy)
    file = f"{values['module']}.py"
    kafka = "" if brokers is None else f", kafka={json.dumps(brokers)}"
    files = f"| `{file}` | the job: what it reads, writes and keeps, and its code |\n"
    files += f"| `test_{file}` | a test of all of it, without a broker |"
    values = {**values, "kafka": kafka, "files": files, "config": file}
    values["brokers"] = _at(brokers, file, ", else localhost:9092")
    return {
        file: _filled("python", f"{kind}.py", values),
        f"test_{file}": _filled("python", f"test_{kind}.py", values),
        **_beside(values),
    }


def _in_properties(kind: str, values: Mapping[str, str], brokers: str | None) -> dict[str, str]:
    name, module, system = values["name"], values["module"], values["system"]
    suffix = "sql" if kind == "sql" else "py"
    code, test = f"package/{module}.{suffix}", f"tests/test_{module}.py"
    config = f"{name}.properties"
    files = f"| `{config}` | the job: its input, its output, its stores, its Kafka |\n"
    files += f"| `{code}` | its code |\n| `{test}` | a test of all of it, without a broker |"
    servers = f"systems.{system}.consumer.bootstrap.servers"
    line = f"# Its brokers are ${BROKERS_VARIABLE}; {servers} would name others."
    values = {
        **values,
        "to": "task.pipeline.output" if kind == "sql" else "task.outputs",
        "servers": line if brokers is None else f"{servers}={brokers}",
        "brokers": _at(brokers, config),
        "work": _work(kind, module, SystemStream(system, values["input"])),
        "memory": "512" if kind == "task" else "1536",
        "files": files,
        "config": config,
    }
    found = _filled("common", "job.properties", values)
    if kind != "sql":
        serde = "json" if kind == "task" else "double"
        found += _STORE.format(system=system, name=name, serde=serde)
    return {
        config: found,
        "pytest.ini": _filled("common", "pytest.ini", values),
        code: _filled(kind, f"job.{suffix}", values),
        test: _filled(kind, "test_job.py", values),
        **_beside(values),
    }


def _at(brokers: str | None, file: str, otherwise: str = "") -> str:
    if brokers is None:
        return f"at `${BROKERS_VARIABLE}`{otherwise}"
    return f"at {brokers}, as `{file}` has it: change it there where it is another one"


def _beside(values: Mapping[str, str]) -> dict[str, str]:
    names = {"README.md": "README.md", ".gitignore": "gitignore"}
    return {path: _filled("common", source, values) for path, source in names.items()}


def _filled(folder: str, source: str, values: Mapping[str, str]) -> str:
    file = resources.files("homeport.cli.host") / "templates" / folder / f"{source}.template"
    return Template(file.read_text(encoding="utf-8")).substitute(values)


def _work(kind: str, module: str, given: SystemStream) -> str:
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
