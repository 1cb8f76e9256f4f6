"""``homeport new``: what it makes runs as it is; a wrong name changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import homeport
from homeport.cli.main import run
from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.config.loading.loader import load
from homeport.config.settings.validation import validate


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


_HERE = Path.cwd()
"""Where relative paths of this process begin; its tests run in another folder."""
FORMS: dict[str, tuple[str, ...]] = {
    "records": (),
    "tables": ("--batch",),
    "spark": ("--pipeline",),
    "statement": ("--sql",),
    "task": ("--properties",),
    "pipeline": ("--properties", "--pipeline"),
    "sql": ("--properties", "--sql"),
}


@pytest.mark.parametrize("kind", ["--task", "--pipeline", "--sql"])
def test_each_kind_is_a_configuration_that_is_taken(kind: str, tmp_path: Path) -> None:
    """Input, output and brokers are those of the command line."""
    streams = ["--input=events.clicks", "--output=events.totals", "--brokers=broker:1"]
    run(["new", "daily-totals", "--properties", kind, *streams])
    config = load(str(tmp_path / "daily-totals" / "daily-totals.properties"), ())
    validate(config)
    assert config["task.inputs"] == "events.clicks"
    to = "task.pipeline.output" if kind == "--sql" else "task.outputs"
    assert config[to] == "events.totals"
    assert config["systems.events.consumer.bootstrap.servers"] == "broker:1"
    code = "sql" if kind == "--sql" else "py"
    assert _made(tmp_path) == {
        "daily-totals/.gitignore",
        "daily-totals/README.md",
        "daily-totals/daily-totals.properties",
        f"daily-totals/package/daily_totals.{code}",
        "daily-totals/pytest.ini",
        "daily-totals/tests/test_daily_totals.py",
    }


@pytest.mark.parametrize("form", FORMS)
def test_its_readme_ends_in_no_refusal(form: str, tmp_path: Path) -> None:
    """run-job refuses what run-local has run without --trial."""
    run(["new", "daily-totals", *FORMS[form]])
    text = (tmp_path / "daily-totals" / "README.md").read_text(encoding="utf-8")
    local, *more = [line for line in text.splitlines() if line.startswith("homeport run-local ")]
    assert "--trial" in local
    assert more == []
    assert "\nrun-job " in text


@pytest.mark.parametrize("kind", ["--task", "--pipeline", "--sql"])
def test_a_properties_file_without_brokers_follows_its_environment(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file made before the cluster is up finds it all the same."""
    monkeypatch.setenv("HOMEPORT_BOOTSTRAP_SERVERS", "before:1")
    run(["new", "daily-totals", kind, "--properties"])
    monkeypatch.setenv("HOMEPORT_BOOTSTRAP_SERVERS", "after:1")
    config = load("daily-totals/daily-totals.properties")
    validate(config)
    assert config["systems.kafka.consumer.bootstrap.servers"] == "after:1"
    assert "at `$HOMEPORT_BOOTSTRAP_SERVERS`. A" in Path("daily-totals/README.md").read_text()


@pytest.mark.parametrize("kind", ["--task", "--batch", "--pipeline", "--sql"])
def test_each_kind_in_python_is_a_configuration_that_is_taken(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --brokers the file names none: it follows its environment when it runs."""
    monkeypatch.setenv("HOMEPORT_BOOTSTRAP_SERVERS", "before:1")
    key = "systems.kafka.consumer.bootstrap.servers"
    run(["new", "web-totals", kind, "--input=kafka.web.clicks", "--output=web-totals"])
    monkeypatch.setenv("HOMEPORT_BOOTSTRAP_SERVERS", "after:1")
    with _imported("web-totals", monkeypatch) as config:
        assert validate(config) == ()
        assert config["task.inputs"] == "kafka.web.clicks"
        to = "task.pipeline.output" if kind == "--sql" else "task.outputs"
        assert config[to] == "kafka.web-totals"
        assert config[key] == "after:1"
    assert _made(tmp_path) == {
        "web-totals/.gitignore",
        "web-totals/README.md",
        "web-totals/test_web_totals.py",
        "web-totals/web_totals.py",
    }
    run(["new", "fixed-totals", kind, "--brokers=broker:1"])
    with _imported("fixed-totals", monkeypatch) as config:
        assert config[key] == "broker:1"


@contextmanager
def _imported(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Config]:
    """The keys of a new job in Python; its folder is not importable afterwards."""
    module = name.replace("-", "_")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        yield load(str(Path(name) / f"{module}.py"), ())
    sys.modules.pop(module, None)


def _made(folder: Path) -> set[str]:
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    return {name for name in found if "__pycache__" not in name}


def _run(tmp_path: Path, *words: str) -> str:
    """What a module of Python prints in the folder, which succeeds."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    paths = environment.get("PYTHONPATH", "").split(":")
    environment["PYTHONPATH"] = ":".join(str(_HERE / path) for path in paths if path)
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("form", ["records", "tables", "task"])
def test_the_test_of_a_new_job_passes_as_it_is(form: str, tmp_path: Path) -> None:
    """As its user runs it: pytest, in the folder of the job. Those with Spark are elsewhere."""
    run(["new", "daily-totals", *FORMS[form]])
    printed = _run(tmp_path / "daily-totals", "pytest", "-q", "-p", "no:cacheprovider")
    assert "2 passed" in printed


def test_a_job_has_nine_lines(tmp_path: Path) -> None:
    """Of code, from its import to what it sends."""
    run(["new", "daily-totals"])
    text = (tmp_path / "daily-totals" / "daily_totals.py").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    assert len([line for line in lines if line and not line.startswith(("#", '"""'))]) == 9


def test_each_form_passes_mypy_and_ruff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their own rules, mypy's strict ones: a new folder has no configuration of either."""
    for form, options in FORMS.items():
        run(["new", f"{form}-job", *options])
    folders = sorted(str(path) for path in tmp_path.iterdir())
    packages = [f"{folder}/package" for folder in folders if Path(folder, "package").exists()]
    # mypy takes an installed homeport before the one of PYTHONPATH.
    own = str(Path(homeport.__file__ or "").parents[1].absolute())
    found = [] if "site-packages" in own else [own]
    monkeypatch.setenv("MYPYPATH", ":".join([*folders, *packages, *found]))
    cache = f"--cache-dir={tmp_path / 'cache'}"
    # Only the new folders are judged, by the rules that a new folder has.
    judged = ["--strict", "--explicit-package-bases", "--follow-imports=silent", cache]
    _run(tmp_path, "mypy", *judged, *folders)
    for folder in folders:
        for check in (["check"], ["format", "--check"]):
            _run(Path(folder), "ruff", *check, "--isolated", "--no-cache", ".")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--example=flight"], "--example = 'flight': .*; flights or observability"),
        ([], "NAME is missing: it names the job and its folder; give one: daily-totals"),
        (["Daily"], "NAME = 'Daily': .*; write it as in daily-totals"),
        (["../up"], r"NAME = '\.\./up': .*; write"),
        (["class"], "NAME = 'class': .*; write"),
        (["json"], "NAME = 'json': Python has a module of that name; "),
        (["pandas", "--batch"], "NAME = 'pandas': Python has a module of that name; "),
        (["confluent-kafka"], "NAME = 'confluent-kafka': Python has a module of that name; "),
        (["good", "--sql", "--pipeline"], "--pipeline and --sql exclude each other: "),
        (["good", "--batch", "--properties"], "--batch and --properties exclude each other: "),
        (
            ["good", "--input=.clicks"],
            r"--input = '\.clicks': .* system.stream; as in kafka.orders",
        ),
        (["good", "--input=kafka.a b"], "--input = 'kafka.a b': it must be a topic, .*; as in "),
        (
            ["good", "--input=web.in", "--output=web.out"],
            "--input = 'web.in': a job in one Python file has the system 'kafka'; write .*, or add",
        ),
        (["good", "--output=other.x"], "--output = 'other.x': its system is not 'kafka', .*; "),
    ],
)
def test_what_cannot_be_is_one_line_and_makes_nothing(
    arguments: list[str], line: str, tmp_path: Path
) -> None:
    """It names the argument and the remedy."""
    with pytest.raises(HomeportError, match=line):
        run(["new", *arguments])
    assert list(tmp_path.iterdir()) == []


def test_a_module_of_the_folder_is_none_of_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though Python looks there while the command runs; that of another folder is one."""
    other = tmp_path / "libraries"
    other.mkdir()
    (other / "of_libraries.py").touch()
    (tmp_path / "here.py").touch()
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), str(other), *sys.path])
    run(["new", "here"])
    with pytest.raises(HomeportError, match="NAME = 'of-libraries': Python has a module"):
        run(["new", "of-libraries"])


def test_a_folder_that_has_something_is_left_alone(tmp_path: Path) -> None:
    """An empty one is used."""
    (tmp_path / "empty").mkdir()
    run(["new", "empty"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(HomeportError, match="NAME = 'full': there is such a folder here; "):
        run(["new", "full"])
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]
