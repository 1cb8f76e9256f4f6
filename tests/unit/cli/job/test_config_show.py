"""homeport config show: the keys of a job's file, named in either way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from homeport.cli.job.config_commands import app
from homeport.cli.usage import run_app
from homeport.config.errors import ConfigError


@pytest.mark.parametrize("named", ["{}", "--config-path={}"])
def test_a_file_is_named_by_itself_or_by_the_option(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys of the command line are laid over it."""
    path = tmp_path / "my.properties"
    path.write_text("job.name=a\nmy.password=b\n", encoding="utf-8")
    run_app(app, ["show", named.format(path), "--config=my.key=c"])
    assert capsys.readouterr().out.splitlines() == [
        "job.name=a",
        "my.key=c",
        "my.password=********",
    ]


def test_a_python_file_without_functions_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keys are printed, as it may be half written; rows that leave need no function."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    text = 'from homeport import Job\njob = Job("shown")\nsource = job.input("in")\n'
    whole = "job.each(source)(repr)\n"
    leaves = 'job.sql("SELECT * FROM `in`", output=job.output("out"))\n'
    line = "warning: job.each is missing: the job has no function for its records; write one under "
    cases = (("no_function", "", f"{line}@job.each\n"), ("one", whole, ""), ("rows", leaves, ""))
    for name, more, expected in cases:
        path = tmp_path / f"shown_{name}.py"
        path.write_text(text + more, encoding="utf-8")
        run_app(app, ["show", str(path)])
        printed = capsys.readouterr()
        assert "job.name=shown\n" in printed.out
        assert printed.err == expected


def test_a_task_of_another_module_needs_no_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the records in place of the file's functions."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "shown_other.py"
    path.write_text('from homeport import Job\njob = Job("shown")\njob.input("in")\n')
    run_app(app, ["show", str(path), "--config=task.class=other:Task"])
    printed = capsys.readouterr()
    assert "task.class=other:Task\n" in printed.out
    assert printed.err == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "--config-path is missing: the job's file is required; write config show "),
        (["a", "--config-path=b"], "--config-path = 'b': a names a file too; write config show "),
    ],
)
def test_a_file_is_named_once(words: list[str], line: str) -> None:
    """Neither never nor twice."""
    with pytest.raises(ConfigError) as refused:
        run_app(app, ["show", *words])
    assert str(refused.value) == f"{line}daily_totals.py"
