"""The stream container's program, which stands still at a step of its own, or dies there.

``python -m stopped_container``: as the product's own, but a file named by the environment says at
which step of a transaction or of a commit something happens, and what. Nothing of this is in the
product: it receives a function that is called at each step.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from homeport.container.incarnation.container_runner import main

PLAN_VARIABLE = "STOPPED_CONTAINER_PLAN"
"""Environment: the file. What it holds is read at each step."""

_POLL_S = 0.01


def write_plan(path: Path, after: str, act: str) -> None:
    """At the end of step ``after`` the container does ``act``; every time, while the plan stands.

    ``kill``: it kills itself. ``wait``: it says so by a file ``<plan>.reached`` and waits until the
    plan is gone. ``jump N``: its wall clock is N seconds further from then on.
    """
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"after": after, "act": act}), encoding="utf-8")
    temporary.replace(path)


def _kill(_plan: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _wait(plan: Path) -> None:
    plan.with_suffix(".reached").touch()
    while plan.exists():
        time.sleep(_POLL_S)


def _jump(seconds: float) -> None:
    """Both of Python's wall clocks, as an operator's ``date -s`` would; the others go on."""
    wall_s, wall_ns = time.time, time.time_ns
    time.time = lambda: wall_s() + seconds
    time.time_ns = lambda: wall_ns() + int(seconds * 1e9)


def at_each_step(plan: Path) -> Callable[[object], None]:
    """What the plan says happens at each step, of whatever kind its steps are."""

    def reached(step: object) -> None:
        try:
            stated = json.loads(plan.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        if stated["after"] != str(step):
            return
        act, _, argument = stated["act"].partition(" ")
        if act == "jump":
            plan.unlink()
            _jump(float(argument))
        else:
            {"kill": _kill, "wait": _wait}[act](plan)

    return reached


if __name__ == "__main__":
    main(reached=at_each_step(Path(os.environ[PLAN_VARIABLE])))
