"""``homeport completion``: what makes a shell complete the tool's commands and options.

The scripts of bash and fish, and what the tool answers when a shell asks it by them, are Typer's.
Typer's of zsh does nothing as a file of ``fpath``, and in a shell that has not loaded completion.
"""

import os
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NoReturn

import typer

from homeport.cli.options import described, new_app

VARIABLE = "_HOMEPORT_COMPLETE"
"""Set by the scripts where the tool shall answer a shell; its name is Typer's rule."""

_PROGRAM = "homeport"
_WORDS = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
_EPILOG = """\
\b
Now, in this shell:
  eval "$(homeport completion bash)"
For ever:
  homeport completion bash > ~/.local/share/bash-completion/completions/homeport
  homeport completion zsh > "${fpath[1]}/_homeport"
  homeport completion fish > ~/.config/fish/completions/homeport.fish
"""
_ZSH = """\
#compdef homeport
_homeport() {
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _HOMEPORT_COMPLETE=complete_zsh homeport)
}
if [[ "$funcstack[1]" == _homeport ]]; then
  _homeport "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit; compinit -i; }
  compdef _homeport homeport
fi"""
"""A file of ``fpath`` is run as the function of its name, and has redefined that from then on."""

app = new_app()


class Shell(StrEnum):
    """The shells that are known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command(epilog=_EPILOG)
@described(shell=typer.Argument(help="Of the script.", case_sensitive=False))
def completion(shell: Shell) -> None:
    """Prints the script by which a shell completes commands and options of homeport."""
    if shell is Shell.ZSH:
        print(_ZSH)
        sys.exit()
    os.environ[VARIABLE] = f"source_{shell.value}"
    answer(dict.fromkeys(("completion", "help"), ""), lambda _: app)


def answer(summaries: Mapping[str, str], app_of: Callable[[str], typer.Typer]) -> NoReturn:
    """Prints what the variable requests, of a command line that the shell has put beside it.

    ``app_of`` loads a command; it is called for the one that the line names, as all take a second.
    """
    every = typer.Typer(add_completion=True, rich_markup_mode=None)
    for name, summary in summaries.items():
        every.command(name, help=summary)(_stub)
    group = typer.main.get_command(every)
    group.params.clear()  # options of Typer that install scripts
    words = next(filter(None, map(os.environ.get, _WORDS)), "").split()
    if len(words) > 1 and words[1] in summaries and isinstance(group, typer.core.TyperGroup):
        group.add_command(typer.main.get_command(app_of(words[1])), words[1])
    group.main(args=[], prog_name=_PROGRAM)
    sys.exit(1)  # the variable has requested nothing that is known


def _stub() -> None:
    """Stand for a command that needs no more than its name."""
