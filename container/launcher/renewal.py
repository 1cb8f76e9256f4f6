"""How a launcher goes on in another Python environment: by exec, between two children.

Its process keeps its id, its folder and its YARN container. What it knows of incarnations that have
ended here goes with it, so that none runs twice (safety C4).
"""

from __future__ import annotations

import importlib.metadata
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeport.job_coordinator.http.messages import Stopped
from homeport.job_coordinator.model.json_values import compact_json, parse_object
from homeport.job_coordinator.python_environment import become, make_ready, own_place

MODULE = "homeport.container.launcher.launcher"
"""Each version has its launcher here."""

log = logging.getLogger("launcher")


@dataclass(frozen=True, slots=True)
class Handed:
    """What a launcher keeps when it changes its environment.

    ``package``: that of the next incarnation; None: the submission's. ``ended``: the stops of
    incarnations that have run here, or must not.
    """

    package: str | None = None
    ended: tuple[Stopped, ...] = ()

    @staticmethod
    def read(words: Sequence[str]) -> Handed | None:
        """Return what the words of the command line have; None: YARN has started this process.

        WireError: they have something else.
        """
        if len(words) < 2:  # noqa: PLR2004 - the program, and this
            return None
        body = parse_object(words[1].encode(), "the words of a launcher")
        ended = tuple(Stopped.from_json(stopped) for stopped in body.get("ended", ()))
        return Handed(body.get("package"), ended)

    def word(self) -> str:
        """Return the word for the command line."""
        ended = [stopped.to_json() for stopped in self.ended]
        return compact_json({"package": self.package, "ended": ended}).decode()


class Renewable:
    """The environment of this launcher. ``variables``: those of its process."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._own = own_place(variables)
        self.python = self._own or sys.executable
        self.version = importlib.metadata.version("homeport")

    def make_ready(self, place: str | None) -> None:
        """Have that environment on this host; HomeportError: it cannot be used."""
        if place != self._own:
            make_ready(place, MODULE, self._variables)

    def is_own(self, place: str | None) -> bool:
        """Return whether it is this environment; None: the submission's."""
        return place == self._own

    def become(self, place: str | None, handed: Handed) -> str:
        """Go on in that environment; return why that fails, else do not return."""
        log.info("this launcher goes on in %s", place or "the environment of the submission")
        try:
            become(place, ("-m", MODULE, handed.word()), self._variables)
        except OSError as error:
            return f"the environment cannot be started: {error}"
