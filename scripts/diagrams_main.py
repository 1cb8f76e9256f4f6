"""The allocator's phases as diagrams and as a table, from ``TRANSITIONS``. Run by scripts/diagrams.

Each diagram shows some of the moves; together they show all.
The text is Mermaid inside Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.allocation.job_state.transitions import TRANSITIONS, Happening

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "appmaster" / "README.md"
_BEGIN = "<!-- printed by scripts/diagrams --write -->\n"
_END = "<!-- end of what scripts/diagrams prints -->\n"

_H, _P = Happening, ContainerPhase


@dataclass(frozen=True)
class Diagram:
    """The moves that ``happenings`` lead to (None: those of no other diagram)."""

    title: str
    happenings: frozenset[Happening] | None
    targets: frozenset[ContainerPhase] = frozenset(ContainerPhase)

    def shows(self, happening: Happening, target: ContainerPhase) -> bool:
        """Whether a move to ``target`` by ``happening`` is in this diagram."""
        if self.happenings is None:
            return not any(d.shows(happening, target) for d in DIAGRAMS if d is not self)
        return happening in self.happenings and target in self.targets


DIAGRAMS = (
    Diagram(
        "From a place in the queue to a container that runs",
        frozenset({_H.PLACED, _H.ALLOCATED, _H.CHECKED_IN}),
        frozenset({_P.REQUESTED, _P.ALLOCATED, _P.ASSIGNED, _P.STARTING}),
    ),
    Diagram(
        "Found running by a driver that starts anew",
        frozenset({_H.CHECKED_IN}),
        frozenset({_P.RUNNING, _P.STOPPING}),
    ),
    Diagram(
        "No place, no launcher: asked again",
        frozenset({_H.EXPIRED, _H.LAUNCH_FAILED, _H.GIVEN_AWAY, _H.RESTED}),
    ),
    Diagram("Starts, stops and losses", frozenset({_H.STARTED, _H.STOPPED, _H.RESOURCE_LOST})),
    Diagram("By decision: failovers, models, orders, the end of the job", None),
)
"""Every move of the table is in one of them."""

_ABOUT = """\
Prints, as Markdown with Mermaid, what may befall a container in which phase, from the allocator's
own table (appmaster/allocation/job_state/transitions.py)."""


def printed() -> str:
    """All diagrams, then the table."""
    parts = [f"#### {diagram.title}\n\n{_drawn(diagram)}" for diagram in DIAGRAMS]
    return "\n".join([*parts, f"#### The whole table\n\n{_table()}"])


def moves(diagram: Diagram) -> Iterator[tuple[ContainerPhase, ContainerPhase, str]]:
    """(from, to, the happenings that lead there), a move onto itself left out."""
    for phase in ContainerPhase:
        for target in ContainerPhase:
            why = [
                happening.value
                for happening in Happening
                if diagram.shows(happening, target)
                and target in TRANSITIONS[phase].get(happening, ())
            ]
            if why and target is not phase:
                yield phase, target, ", ".join(why)


def _drawn(diagram: Diagram) -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {a.name} --> {b.name}: {why}" for a, b, why in moves(diagram)]
    return "\n".join([*lines, "```", ""])


def _table() -> str:
    lines = ["| phase | what befalls it | may lead to |", "| --- | --- | --- |"]
    for phase in ContainerPhase:
        for happening in Happening:
            targets = TRANSITIONS[phase].get(happening, frozenset())
            if targets:
                names = ", ".join(target.name for target in ContainerPhase if target in targets)
                lines.append(f"| {phase.name} | {happening.value} | {names} |")
    return "\n".join([*lines, ""])


def with_diagrams(page: str) -> str:
    """The page with its printed part recreated.

    Raises:
        ValueError: the page has no such part.
    """
    before, _, rest = page.partition(_BEGIN)
    _, found, after = rest.partition(_END)
    if not found:
        raise ValueError("the page has no part for what scripts/diagrams prints")
    return f"{before}{_BEGIN}\n{printed()}\n{_END}{after}"


def main() -> None:
    """Print, or write into appmaster/README.md."""
    parser = argparse.ArgumentParser(prog="scripts/diagrams", description=_ABOUT)
    about = "write them into appmaster/README.md instead"
    parser.add_argument("--write", action="store_true", help=about)
    if parser.parse_args().write:
        README.write_text(with_diagrams(README.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(printed())


if __name__ == "__main__":
    main()
