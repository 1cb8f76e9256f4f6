"""The one form of all commands: how a job is named, how numbers are read and answers printed."""

import copy
import functools
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar, get_args

import typer
from msgspec import Struct

from homeport.config.config import Config
from homeport.config.loading.loader import load
from homeport.config.loading.regex_topics import TopicsOf
from homeport.config.number_text import float_of, whole_of
from homeport.config.printable import printable_lines
from homeport.config.secret_names import warnings_of_overrides
from homeport.job_coordinator.model.wire_form import json_text

ConfigPath = Annotated[
    str,
    typer.Option(
        "--config-path", help="The job's file, Python or properties: a path or a file: URL."
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--config", help="key=value, laid over the job's file; may be given many times."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for a script.")]
ShowSecrets = Annotated[
    bool,
    typer.Option(
        "--show-secrets",
        help="Print secrets too. They are the coordinator stream's, which a reader of the job's "
        "properties file can see.",
    ),
]
ALLOWED = "Only warn of keys that begin as Homeport's do and that no program reads."
_ABOUT = "about_parameters"
_Command = TypeVar("_Command", bound=Callable[..., object])
_NUMBERS: dict[type, tuple[Callable[[str], float], str]] = {
    int: (whole_of, "a whole number"),
    float: (float_of, "a number"),
}


@dataclass(frozen=True, slots=True)
class NamedJob:
    """The job that ``--config-path`` and ``--config`` name."""

    path: str
    overrides: list[str] | None

    def config(self, topics_of: TopicsOf | None = None) -> Config:
        """Load its configuration, as ``loaded`` does."""
        return loaded(self.path, self.overrides, topics_of)


@dataclass(frozen=True, slots=True)
class FromJob:
    """Marks a parameter of a command which has ``--config-path`` and ``--config`` for it.

    ``open``: makes its value, and closes it after the command.
    """

    open: Callable[[NamedJob], AbstractContextManager[object]]


Named = Annotated[NamedJob, FromJob(nullcontext)]
Given = Annotated[Config, FromJob(lambda job: nullcontext(job.config()))]


def loaded(
    config_path: str, overrides: list[str] | None, topics_of: TopicsOf | None = None
) -> Config:
    """Load the job's configuration as it was given; warn of secrets on the command line.

    Inputs by regular expression are looked up where ``topics_of`` is given.
    """
    warn(warnings_of_overrides(overrides or ()))
    return load(config_path, overrides or (), topics_of)


class _App(typer.Typer):
    def command(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as Typer's own
        add = super().command(*args, **kwargs)
        return lambda function: (add(_with_options(function)), function)[1]


def new_app(summary: str | None = None) -> typer.Typer:
    """Return an app in the one form of all commands: errors come out, nothing is decorated."""
    return _App(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, help=summary
    )


def described(**about: object) -> Callable[[_Command], _Command]:
    """Declare parameters of a command: a text is the help of the option of the parameter's name.

    Another option, or an argument, is Typer's.
    """

    def describe(function: _Command) -> _Command:
        vars(function)[_ABOUT] = about
        return function

    return describe


def _with_options(function: Callable[..., object]) -> Callable[..., object]:
    """Return ``function`` with the two options of a job in place of a parameter ``FromJob``."""
    signature = inspect.signature(function, eval_str=True)
    about: dict[str, object] = vars(function).get(_ABOUT, {})
    if unknown := about.keys() - signature.parameters.keys():
        raise TypeError(f"{function.__qualname__} has no parameters {unknown}")
    opens: dict[str, FromJob] = {}
    parameters = list[inspect.Parameter]()
    for name, parameter in signature.parameters.items():
        annotation = parameter.annotation
        if name in about:
            annotation = Annotated[annotation, _option(name, about[name])]
        mark = next(iter(getattr(annotation, "__metadata__", ())), None)
        if isinstance(mark, FromJob):
            opens[name] = mark
            parameters.append(_keyword("config_path", ConfigPath))
            parameters.append(_keyword("config", Overrides, None))
        else:
            parameters.append(_keyword(name, _read_by_us(annotation), parameter.default))

    @functools.wraps(function)
    def command(**options: Any) -> object:  # noqa: ANN401 - whatever the command takes
        with ExitStack() as opened:
            for name, from_job in opens.items():
                job = NamedJob(options.pop("config_path"), options.pop("config"))
                options[name] = opened.enter_context(from_job.open(job))
            return function(**options)

    vars(command)["__signature__"] = signature.replace(parameters=parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _option(name: str, about: object) -> object:
    return (
        typer.Option(f"--{name.replace('_', '-')}", help=about) if isinstance(about, str) else about
    )


def _keyword(
    name: str, annotation: object, default: object = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _read_by_us(annotation: Any) -> Any:  # noqa: ANN401 - of any parameter
    """Have numbers read by ``number_text``: Python takes ``1_0``, digits of all scripts and nan."""
    base = next(iter(get_args(annotation)), None)
    for kind, (read, what) in _NUMBERS.items():
        if kind in (base, *get_args(base)):
            info = copy.copy(annotation.__metadata__[0])
            info.parser = functools.partial(_number, read, what, info.min, info.max)
            return Annotated[base, info]
    return annotation


def _number(
    read: Callable[[str], float], what: str, least: float | None, most: float | None, text: object
) -> float:
    with suppress(ValueError):
        number = read(str(text))
        if (least is None or least <= number) and (most is None or number <= most):
            return number
    bounds = "" if least is None else f" of at least {least}"
    raise ValueError(f"it must be {what}{bounds if most is None else f' from {least} to {most}'}")


class Item(Protocol):
    """One of several things that a command prints; its text is for people."""

    def shown(self) -> Struct:
        """Return it for a script."""


def note(line: str) -> None:
    """Print a line for people, beside the answer: on standard error."""
    print(line, file=sys.stderr, flush=True)


def warn(lines: Iterable[object]) -> None:
    """Print warnings, one line each, beside the answer."""
    for line in lines:
        note(f"warning: {line}")


class Progress:
    """Prints lines of progress: one in ``every_s`` seconds at most, none before ``after_s``."""

    def __init__(
        self, every_s: float, after_s: float = 0.0, report: Callable[[str], None] = note
    ) -> None:
        self._every_s, self._due_s = every_s, time.monotonic() + after_s
        self._report = report

    def show(self, line: str) -> None:
        """Print the line, if it is time for one."""
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._due_s = now_s + self._every_s
            self._report(line)


def note_origin(origin: object) -> None:
    """Print where the answer comes from, beside it."""
    note(f"from {origin}")


def indented_json(body: object) -> str:
    """Return ``body`` as JSON for a script and for people."""
    return json.dumps(body, indent=1, ensure_ascii=False)


def print_answer(body: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print an answer: as one line of JSON, else its ``lines``."""
    print(json_text(body) if as_json else printable_lines(lines))


def print_item(item: Item, *, as_json: bool) -> None:
    """Print one of several answers, at once: as one line of JSON, else as its text."""
    print(json_text(item.shown()) if as_json else item, flush=True)
