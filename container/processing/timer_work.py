"""TimerWork: the timers of all tasks of a container, one task after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pyarrow as pa

from homeport.container.processing.loop_dependencies import Task
from homeport.container.processing.timers import Timers
from homeport.job_coordinator.model.ids import TaskName

_AT_ONCE = 2_000
"""Timers of one task in one turn: more would keep the transaction from its end."""


class TimerWork:
    """Says when timers are due, and has their tasks called.

    Args:
        timers: of each task that has a scheduler.
        tasks: all tasks of the container.
        go_on: called after each timer; raises after the order to stop.
    """

    def __init__(
        self,
        timers: Mapping[TaskName, Timers],
        tasks: Mapping[TaskName, Task],
        go_on: Callable[[], None],
    ) -> None:
        self._timers = dict(sorted(timers.items()))
        self._tasks = tasks
        self._go_on = go_on

    def saw(self, task_name: TaskName, rows: pa.Table) -> None:
        """The task has processed ``rows``."""
        if task_name in self._timers:
            self._timers[task_name].saw(rows)

    def wait_s(self) -> float:
        """Seconds until one is due; infinite where none will be without more input."""
        return min((timers.wait_s() for timers in self._timers.values()), default=math.inf)

    def run(self) -> set[TaskName]:
        """Those that were due at the call have been called, each task's in turn; whose they were.

        One that a call before it has cancelled, or given another time, is not called.
        """
        called: set[TaskName] = set()
        for name, timers in self._timers.items():
            for timer in timers.due(_AT_ONCE):
                if timers.take(timer):
                    self._tasks[name].on_timer(timer)
                    called.add(name)
                self._go_on()
        return called
