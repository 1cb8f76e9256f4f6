"""The head and the end of every command: its job, its progress and answers, its exit code."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import pytest
import typer
from msgspec import Struct, defstruct

from homeport.cli.formatting import age, number, size, table
from homeport.cli.options import (
    FromJob,
    Given,
    Named,
    NamedJob,
    Progress,
    described,
    new_app,
    print_answer,
    print_item,
)
from homeport.cli.usage import Control, printable_streams, run_app, run_program
from homeport.config.errors import ConfigError, HomeportError, NoRightError, UnansweredError
from homeport.job_coordinator.ui.first_screen import listed

EVENTS: list[str] = []


@contextlib.contextmanager
def _opened(job: NamedJob) -> Iterator[str]:
    EVENTS.append(f"open {job.path} {job.overrides}")
    try:
        yield job.path
    finally:
        EVENTS.append("close")


app = new_app()


@app.command()
@described(last="How many.", name=typer.Argument(help="Of what."))
def show(
    *, name: str, job: Annotated[str, FromJob(_opened)], last: int = 3, fails: bool = False
) -> None:
    """Shows a job."""
    EVENTS.append(f"{name} {job} {last}")
    if fails:
        raise ConfigError("k", None, "it is so", "change it")


def test_a_job_is_open_while_its_command_runs() -> None:
    """It is closed also where the command fails, whose error comes out."""
    EVENTS.clear()
    run_app(app, ["n", "--config-path=p", "--config=a=b", "--config=c=d", "--last=7"])
    assert EVENTS == ["open p ['a=b', 'c=d']", "n p 7", "close"]
    EVENTS.clear()
    with pytest.raises(ConfigError, match="it is so"):
        run_app(app, ["n", "--config-path=p", "--fails"])
    assert EVENTS[-2:] == ["n p 3", "close"]


def test_the_options_of_a_job_stand_where_its_parameter_stands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the help they are in the order of the parameters."""
    run_app(app, ["--help"])
    shown = capsys.readouterr().out
    places = [shown.index(word) for word in ("--config-path", "--config ", "--last", "--fails")]
    assert places == sorted(places)
    assert "--config-path" in shown[: shown.index("--last")]


def test_a_configuration_is_loaded_at_once_or_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Secrets on the command line are warned of when it is loaded."""
    file = tmp_path / "j.properties"
    file.write_text("job.name=j", encoding="utf-8")
    early, late = new_app(), new_app()

    @early.command()
    def loads(*, given: Given) -> None:
        print(given["job.name"], given["a.password"])

    @late.command()
    def names(*, job: Named) -> None:
        print("first")
        print(job.config()["job.name"])

    arguments = [f"--config-path={file}", "--config=a.password=1"]
    run_app(early, arguments)
    printed = capsys.readouterr()
    assert printed.out == "j 1\n"
    assert printed.err.startswith("warning: ")
    run_app(late, arguments)
    assert capsys.readouterr().out == "first\nj\n"


def test_progress_is_at_most_one_line_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first comes at once, or after its time."""
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    lines: list[str] = []
    at_once = Progress(2.0, report=lines.append)
    later = Progress(5.0, 5.0, lines.append)
    for now_s[0] in (100.0, 101.9, 102.0, 105.0):
        at_once.show(f"a{now_s[0]:g}")
        later.show(f"b{now_s[0]:g}")
    assert lines == ["a100", "a102", "a105", "b105"]


@dataclass
class _Thing:
    name: str

    def shown(self) -> Struct:
        return defstruct("Shown", [("name", str)])(self.name)

    def __str__(self) -> str:
        return f"thing {self.name}"


def test_an_answer_is_for_a_script_or_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """One line of JSON, or text that a terminal only shows."""
    print_answer({"a": "é"}, ["x\x1b", "y"], as_json=True)
    print_answer({"a": "é"}, ["x\x1b", "y"], as_json=False)
    print_item(_Thing("n"), as_json=True)
    print_item(_Thing("n"), as_json=False)
    printed = capsys.readouterr().out
    assert printed == '{"a":"é"}\nx\\u001b\ny\n{"name":"n"}\nthing n\n'


def test_an_interrupt_exits_as_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a command that Ctrl-C has ended would seem to have succeeded."""
    app = typer.Typer()

    @app.command()
    def command() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["command"])
    with pytest.raises(KeyboardInterrupt):
        run_app(app)


def _raises(error: BaseException) -> Callable[[], NoReturn]:
    def program() -> NoReturn:
        raise error

    return program


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (HomeportError("bad\x1b[2J"), 1, "error: bad\\u001b[2J\n"),
        (UnansweredError("it may go on"), 3, "error: it may go on\n"),
        (typer.BadParameter("Value error, x."), 1, "error: Invalid value: x; see p --help\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (typer.Abort(), 130, "interrupted\n"),
    ],
)
def test_each_end_has_its_line_and_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on standard error, which a terminal only shows."""
    before = sys.stdout, sys.stderr
    with pytest.raises(SystemExit) as ended:
        run_program(_raises(error), "p", "interrupted")
    assert ended.value.code == code
    assert capsys.readouterr().err == line
    assert (sys.stdout, sys.stderr) == before


def test_an_interrupt_may_have_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C needs no word about itself."""
    with pytest.raises(SystemExit):
        run_program(_raises(KeyboardInterrupt()), "p")
    assert not capsys.readouterr().err


def test_what_is_printed_only_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Of values, notes and echoed lines alike; a text made to act on the terminal does."""
    with printable_streams():
        print("a\x1b[2J", "b\nc\td")
        typer.echo("\x9b1m")
        print("\r", file=sys.stderr)
        sys.stdout.write(Control("\x1b[H"))
        sys.stdout.writelines(["\x07", "\x08"])
    shown = capsys.readouterr()
    assert shown.out == "a\\u001b[2J b\nc\td\n\\u009b1m\n\x1b[H\\u0007\\b"
    assert shown.err == "\\r\n"


def test_what_needs_a_token_says_how_one_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    """In the same line."""

    def refused() -> None:
        raise NoRightError("GET http://h:1/v1/audit: 401 a bearer token is needed")

    with pytest.raises(SystemExit, match="1"):
        run_program(refused, "homeport audit")
    assert capsys.readouterr().err == (
        "error: GET http://h:1/v1/audit: 401 a bearer token is needed; let HOMEPORT_TOKEN_FILE "
        "name a file with the token of an operator: homeport token new NAME --role=read makes one\n"
    )


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KB"), (5 * 1024**3, "5.0 GB")],
)
def test_a_size_is_in_the_largest_unit_that_it_fills(count: int, expected: str) -> None:
    """Bytes are whole; of the others one decimal is enough."""
    assert size(count) == expected
    assert size(1024**6) == f"{1024**2}.0 TB"


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [(-5, "0 s"), (999, "0 s"), (59_999, "59 s"), (3_600_000, "1 h"), (90 * 86_400_000, "90 d")],
)
def test_an_age_is_in_the_largest_unit_that_it_fills(milliseconds: int, expected: str) -> None:
    """What lies in the future has no age."""
    assert age(milliseconds) == expected


def test_one_item_has_the_singular() -> None:
    """And some plurals are their own."""
    assert number(1, "file") == "1 file"
    assert number(2, "file") == "2 files"
    assert number(0, "directory", "directories") == "0 directories"


def test_a_table_has_columns_as_wide_as_what_is_in_them() -> None:
    """Numbers stand to the right; no line ends in blanks."""
    rows = [("NAME", "LAG", "HOST"), ("long name", "7", "a"), ("b", "12345", "")]
    assert list(table(rows, {1})) == [
        "NAME         LAG  HOST",
        "long name      7  a",
        "b          12345",
    ]


def test_of_many_names_some_are_shown() -> None:
    """And how many more there are."""
    assert listed(["a", "b"]) == "a, b"
    assert listed(["a"] * 21) == f"{', '.join(['a'] * 20)} and 1 more"
    assert listed([]) == ""
