"""--config-path=FILE.py: the one job of the file, or one line that says why there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from homeport.cli.usage import run_program
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.loading.declared_job import place_of
from homeport.config.loading.loader import load
from homeport.config.loading.rewriters import rewritten
from homeport.config.system_stream import SystemStream
from homeport.container.classes import load_serde
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.user_code import user_object

JOB = 'from homeport import Job\njob = Job("by-file")\njob.input("orders")\n'


@pytest.fixture(autouse=True)
def _own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules and folders that a test loads are gone after it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = {*sys.modules}
    yield
    for name in {*sys.modules} - known:
        del sys.modules[name]


def _written(folder: Path, text: str, name: str = "by_file") -> str:
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_a_python_file_is_the_job_that_it_declares(tmp_path: Path) -> None:
    """Keys of the command line are laid over it, a module beside it is found."""
    (tmp_path / "beside_it.py").write_text("NAME = 'orders'\n", encoding="utf-8")
    text = JOB.replace("job.input(", "import beside_it\njob.input(beside_it.NAME or ")
    path = _written(tmp_path, text)
    config = load(path, ["job.container.count=3"])
    assert config["task.class"] == "by_file:job"
    assert config["task.inputs"] == "kafka.orders"
    assert config["yarn.package.path"] == path
    assert config["job.container.count"] == "3"
    assert load(f"file://{path}")["task.class"] == "by_file:job"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param("", "it must have one job at its top level, and has none", id="none"),
        pytest.param(
            f"{JOB}more = Job('more')\n",
            "it must have one job at its top level, and has job, more",
            id="two",
        ),
        pytest.param(f"{JOB}1 / 0\n", "line 4 fails: ZeroDivisionError: division by zero", id="it"),
        pytest.param("import gone\n", "line 1 fails: ModuleNotFoundError: No module", id="import"),
        pytest.param("job = (\n", "line 1 fails: SyntaxError: '(' was never closed", id="syntax"),
        pytest.param("raise SystemExit(3)\n", "line 1 fails: SystemExit: 3", id="exit"),
    ],
)
def test_a_file_without_one_job_is_refused(text: str, rule: str, tmp_path: Path) -> None:
    """The line names the file and the line at fault."""
    path = _written(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert str(refused.value).startswith(f"--config-path = {path!r}: {rule}")


@pytest.mark.parametrize(
    ("text", "more", "line"),
    [
        (
            "import absent\njob: Job = hp.Job('j')\n",
            (),
            (
                "'FILE.py': line 1 fails: ModuleNotFoundError: No module named 'absent'; where it "
                'is your own, ship its folder: keys={"yarn.package.path": "."} in FILE.py (for '
                "homeport upgrade: --package=FOLDER); else install it for the job"
            ),
        ),
        (
            "import absent\njob = Job('j')\n",
            ("other.py",),
            "'FILE.py': line 1 fails: ModuleNotFoundError: No module named 'absent'; correct it",
        ),
        (
            "import absent\njob = Job('j')\n",
            (".DS_Store", "__pycache__"),
            (
                "'FILE.py': line 1 fails: ModuleNotFoundError: No module named 'absent'; where it "
                'is your own, ship its folder: keys={"yarn.package.path": "."} in FILE.py (for '
                "homeport upgrade: --package=FOLDER); else install it for the job"
            ),
        ),
        (
            "\njob = Job('j'\n",
            (),
            (
                "'FILE.py': line 2 fails: SyntaxError: '(' was never closed (FILE.py, line 2); "
                "correct it"
            ),
        ),
    ],
    ids=["alone", "with others", "with hidden", "syntax"],
)
def test_a_container_names_the_file_that_it_cannot_import(
    tmp_path: Path, request: pytest.FixtureRequest, text: str, more: tuple[str, ...], line: str
) -> None:
    """Its user has written no task.class; a module beside it may not have been shipped."""
    name = f"shipped_{request.node.callspec.id.replace(' ', '_')}"
    for file in (f"{name}.py", *more):
        (tmp_path / file).write_text(text)
    sys.path.insert(0, str(tmp_path))
    with pytest.raises(ConfigError) as refused:
        user_object("task.class", f"{name}:job")
    assert str(refused.value) == f"--config-path = {line.replace('FILE.py', f'{name}.py')}"


def test_a_fault_has_its_line_where_the_working_directory_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames of the import system have names of no file, as ``<frozen importlib._bootstrap>``."""
    path = _written(tmp_path, "\nimport absent\n", "in_gone_folder")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match=r"line 2 fails: ModuleNotFoundError: No module named"):
        load(path)


@pytest.mark.parametrize("module", ["own_class", "os.path.absent", "builtin_absent"])
def test_a_module_without_a_declared_job_is_named_by_its_key(tmp_path: Path, module: str) -> None:
    """As the user wrote it."""
    (tmp_path / "own_class.py").write_text("import absent\nclass job: pass\n")
    sys.path.insert(0, str(tmp_path))
    with pytest.raises(ConfigError, match=rf"^task\.class = '{module}:job': the mod"):
        user_object("task.class", f"{module}:job")


@pytest.mark.parametrize("method", ["is_file", "read_text", "iterdir"])
def test_a_file_that_cannot_be_read_is_named_by_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """In one line: it, or its folder, may be another user's."""
    (tmp_path / "unreadable.py").write_text("import absent\njob = Job('j')\n")
    sys.path.insert(0, str(tmp_path))

    def refused(path: Path, **_: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, method, refused)
    with pytest.raises(ConfigError, match=r"^task\.class = 'unreadable:job': the mod"):
        user_object("task.class", "unreadable:job")


def test_a_wrong_key_is_refused_at_its_line(tmp_path: Path) -> None:
    """The rest of the line is that of a properties file."""
    path = _written(tmp_path, JOB.replace(")\n", ', keys={"task.commit.ms": "x"})\n', 1))
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert str(refused.value) == (
        "task.commit.ms = 'x': it must be a whole number (by_file.py, line 2); write a number, "
        "such as 10000"
    )


def test_a_key_that_a_later_rule_refuses_has_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the file gave the value; not where the command line has another one."""
    given = ',\n    keys={"task.commit.ms": 7},\n)\n'
    path = _written(tmp_path, JOB.replace(")\n", given, 1), "ruled")
    load(path)

    def printed(value: str) -> str:
        def refused() -> None:
            raise ConfigError("task.commit.ms", value, "it is odd", "double it")

        with pytest.raises(SystemExit):
            run_program(refused, "p")
        return capsys.readouterr().err

    line = "error: task.commit.ms = '{}': it is odd; double it"
    assert printed("7") == line.format(7) + " (ruled.py, line 2)\n"
    assert printed("9") == line.format(9) + "\n"


def test_brokers_that_do_not_answer_are_named_where_the_file_gives_them(tmp_path: Path) -> None:
    """Not where they come from the environment, nor where no key has the address."""
    key, text = "systems.kafka.consumer.bootstrap.servers", 'job = Job("asks", kafka="a:1")'
    load(_written(tmp_path, f'from homeport import Job\n{text}\njob.input("in")\n', "asks"))
    assert place_of(UnavailableError("it is away", key, "a:1")) == "asks.py, line 2"
    assert place_of(UnavailableError("it is away", key, "b:1")) is None
    assert place_of(UnavailableError("it is away")) is None


def test_a_job_whose_schema_cannot_be_read_gives_no_place(tmp_path: Path) -> None:
    """Its value of the key is not known then."""
    text = (
        "from homeport import Avro, Job\n"
        'job = Job("without-schema", keys={"task.commit.ms": 13})\n'
        'job.input("in", value=Avro("absent.avsc"))\n'
    )
    with pytest.raises(ConfigError, match="the schema cannot be read"):
        load(_written(tmp_path, text, "without_schema"))
    assert place_of(ConfigError("task.commit.ms", "13", "it is odd", "double it")) is None


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("by-file", "containers import it, and 'by-file' cannot be the name of a job's module"),
        ("json", "containers import it, and 'json' cannot be the name of a job's module"),
        ("homeport", "containers import it, and 'homeport' cannot be the name of a job's module"),
        ("pytest", "another module of that name is loaded"),
    ],
)
def test_a_name_that_containers_cannot_import_is_refused(
    name: str, rule: str, tmp_path: Path
) -> None:
    """Before anything of the file runs."""
    path = _written(tmp_path, "raise SystemExit\n", name)
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert f": {rule}" in str(refused.value)


def test_a_file_behind_another_of_its_name_is_refused(tmp_path: Path) -> None:
    """Python would import the other one, here and in containers."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    other = _written(tmp_path / "first", "")
    path = _written(tmp_path / "second", JOB)
    sys.path[:0] = [str(tmp_path / "first"), str(tmp_path / "second")]
    with pytest.raises(ConfigError, match=f"Python finds {other} in its place"):
        load(path)


def test_a_job_that_another_module_makes_is_refused(tmp_path: Path) -> None:
    """Containers would look for it there."""
    makes = "from homeport import Job\ndef made():\n    return Job('by-file')\n"
    _written(tmp_path, makes, "makes_it")
    path = _written(tmp_path, "import makes_it\njob = makes_it.made()\n")
    with pytest.raises(ConfigError, match="job is made by another module, in which containers do"):
        load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """As one of properties is."""
    with pytest.raises(ConfigError, match="there is no such file; give the path of the job's"):
        load(str(tmp_path / "none.py"))


_OWN = """
from homeport.job_coordinator.grouper.task_name_grouper import TaskNameGrouper


class Own:
    def __init__(self, *_):
        raise KeyboardInterrupt


class Grouper(TaskNameGrouper):
    def group(self, tasks, task_locality, processor_locality):
        raise KeyboardInterrupt


class Unborn(Own, Grouper):
    pass


class Carries:
    def to_bytes(self, value):
        raise KeyboardInterrupt

    def from_bytes(self, data):
        raise KeyboardInterrupt
"""
_REWRITER = {"job.config.rewriters": "own", "job.config.rewriter.own.class": "own_interrupted:Own"}


def _model(grouper: str) -> object:
    name = f"own_interrupted:{grouper}"
    of_job = {"job.name": "own", "job.default.system": "kafka", "task.inputs": "kafka.in"}
    config = {**of_job, "task.name.grouper.factory": name}
    count = {SystemStream("kafka", "in"): 1}
    return calculate_job_model(Config(config), count, NOTHING)


@pytest.mark.parametrize(
    "call",
    [
        lambda folder: load(str(folder / "interrupted.py")),
        lambda _: user_object("task.class", "interrupted:Job"),
        lambda _: rewritten(Config(_REWRITER), {}, None),
        lambda _: _model("Grouper"),
        lambda _: _model("Unborn"),
        lambda _: load_serde("key", "own_interrupted:Own"),
        lambda _: load_serde("key", "own_interrupted:Carries").to_bytes(b""),
        lambda _: load_serde("key", "own_interrupted:Carries").from_bytes(b""),
    ],
)
def test_an_interrupt_within_the_jobs_own_code_is_no_fault_of_it(
    call: Callable[[Path], object], tmp_path: Path
) -> None:
    """The command ends as it does when it is interrupted elsewhere."""
    _written(tmp_path, "raise KeyboardInterrupt\n", "interrupted")
    _written(tmp_path, _OWN, "own_interrupted")
    sys.path.insert(0, str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        call(tmp_path)
