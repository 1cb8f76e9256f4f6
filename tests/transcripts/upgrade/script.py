"""A transcript of an upgrade's machine in the small world of the search.

``begin 0-0 0`` has these processors with the submission's package, and the order to upgrade them;
``begin 0-0 0 from old`` has them with an earlier package, and ``configure 0-0 0`` in a rolling
restart, with other values in force than they have. ``next`` is the machine's next step. Any
other ``>`` line is one thing that happens in that world, by the words of ``SmallWorld``: ``0-0
checks in``, ``0-0 restarts``, ``0-0 fails``, ``the AM dies``. Below stand the record, a restart or
what the machine waits for, then each processor.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.appmaster.upgrade import machine
from homeport.job_coordinator.model.upgrade import UpgradeState
from tests.exhaustive.upgrade.rolling_world import BROKEN, RollingWorld
from tests.exhaustive.upgrade.small_world import ALL, Container, SmallWorld, World
from tests.transcripts.replay import replayed

ROLLING = frozenset({"new_may_fail", "old_may_fail", "am_may_die", "may_hang", BROKEN})
_FROM = " from "


def played(text: str) -> str:
    """``text`` with its answers made again; ValueError for a line that is no event."""
    rules = SmallWorld(())
    world = rules.begun()

    def answers_to(line: str) -> list[str]:
        nonlocal rules, world
        if line.startswith("begin "):
            names, _, previous = line.removeprefix("begin ").partition(_FROM)
            rules = SmallWorld(names.split(), ALL, previous or None)
            world = rules.begun()
            return []
        if line.startswith("configure "):
            rules = RollingWorld(line.removeprefix("configure ").split(), ROLLING)
            world = rules.begun()
            return []
        try:
            world, answers = _after(rules, world, line)
        except StopIteration:
            raise ValueError("that does not happen here") from None
        rules.judge(world)
        return answers

    return replayed(text, answers_to)


def _after(rules: SmallWorld, world: World, event: str) -> tuple[World, list[str]]:
    """The world after that, and what is said of it; StopIteration where it cannot happen."""
    if event == "next":
        made = machine.decide(world.state, world.orders, rules.seen(world))
        if made.refused:
            _, after = next(rules.free(world))
            return after, [f"refused  {made.refused}"]
        if made.state is None and made.restart is None:
            return world, [f"waits    {made.waits}" if made.waits else "nothing to do"]
        # The machine's step is the first of what happens.
        _, after = next(rules.free(world))
        line = f"restart  {made.restart}" if made.state is None else f"record   {_said(made.state)}"
        return after, [line]
    moves = (*rules.free(world), *rules.faults(world))
    after = next(after for label, after in moves if label == event)
    record = [] if after.state in {None, world.state} else [f"record   {_said(after.state)}"]
    return after, [*record, *_containers(rules, after)]


def _said(state: UpgradeState | None) -> str:
    assert state is not None
    given = " ".join(state.given) or "none"
    line = f"{state.phase.value}, given {given}, current {state.current or 'none'}"
    return f"{line}: {state.reason}" if state.reason else line


def _containers(rules: SmallWorld, world: World) -> Iterator[str]:
    for name, container in zip(rules.ids, world.containers, strict=True):
        yield f"{name:8} {_in_words(container)}"


def _in_words(container: Container) -> str:
    package = container.package or "the submission's"
    facts = [
        {"up": "runs", "down": "is down, ran", "sent": "starts"}[container.phase] + f" {package}",
        "" if container.is_known else "its launcher was not heard",
        "new is prepared" if container.prepared == "new" != container.package else "",
        "a restart is requested" if container.has_request else "",
        "is behind" if container.is_behind else "",
        "hangs" if container.hang else "",
        "its launcher can have no other package" if container.is_unable else "",
        "no host has room for it" if container.has_no_place else "",
    ]
    return ", ".join(filter(None, facts))
