"""How a command line is run, what it prints, and what is wrong with it in one line."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TextIO

import typer

from homeport.config.errors import (
    ConfigError,
    HomeportError,
    NoRightError,
    UnansweredError,
    UnavailableError,
)
from homeport.config.loading.declared_job import place_of
from homeport.config.printable import printable

_NOISE = "Value error, "
_INTERRUPTED = 130
_UNANSWERED = 3
_NO_RIGHT = (
    "let HOMEPORT_TOKEN_FILE name a file with the token of an operator: homeport token new NAME "
    "--role=read makes one"
)


class Control(str):
    """A text for the terminal to act on, such as one that clears it; to ``write``, not to print."""

    __slots__ = ()


class PrintableStream:
    """Standard output or error on which only line breaks and tabs act; all else is shown."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write ``text`` as ``printable`` has it, a ``Control`` as it is."""
        self._stream.write(text if isinstance(text, Control) else printable(text, "\n\t"))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write each of ``texts``, with no line break of its own."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Have all that is printed meanwhile go through a ``PrintableStream``."""
    out, error = PrintableStream(sys.stdout), PrintableStream(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        yield


def run_program(
    program: Callable[[], None], help_name: str, interrupted: str | None = None
) -> None:
    """Run ``program``, and end the process where it raises: one line on standard error.

    Exit codes: 1: an error; 3: what was ordered may go on; 130: interrupted. ``help_name``: what
    the line of a wrong command line refers to. ``interrupted``: a line for that end.
    """
    line: str | None = None
    code = 1
    with printable_streams():
        try:
            program()
            sys.stdout.flush()
        except UnansweredError as error:
            line, code = f"error: {error}", _UNANSWERED
        except NoRightError as error:
            line = f"error: {error}; {_NO_RIGHT}"
        except HomeportError as error:
            at_key = error if isinstance(error, ConfigError | UnavailableError) else None
            place = None if at_key is None else place_of(at_key)
            line = f"error: {error}" if place is None else f"error: {error} ({place})"
        except typer.TyperException as error:
            line = f"error: {usage_error(error)}; see {help_name} --help"
        except BrokenPipeError:  # the reader of the answer, such as head, has enough
            sys.stderr.close()
            sys.exit(1)
        except (KeyboardInterrupt, typer.Abort):
            line, code = interrupted, _INTERRUPTED
        else:
            return
        if line is not None:
            print(line, file=sys.stderr, flush=True)
        sys.exit(code)


def interrupt_on_sigterm() -> None:
    """Have SIGTERM end the command as Ctrl-C does: with clean-up."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def run_app(
    app: typer.Typer, arguments: Sequence[str] | None = None, name: str | None = None
) -> None:
    """Run the command of this process's arguments, or of those given; what it raises comes out.

    ``name`` is what help texts call the program. Typer turns a KeyboardInterrupt into a
    returned exit code: here it is one again.
    """
    given = None if arguments is None else list(arguments)
    if app(given, name, standalone_mode=False) == _INTERRUPTED:
        raise KeyboardInterrupt


def usage_error(error: typer.TyperException) -> str:
    """Return Typer's message as one line without full stop, ready for a semicolon and a remedy."""
    return " ".join(error.format_message().split()).replace(_NOISE, "").rstrip(".")
