"""CallWatch: notices a call of the job's code that does not return.

The container still beats, since the thread that beats does not wait for user code (safety C3), and
its lease goes on: nothing else notices a task that waits for ever. A thread of its own looks at the
calls under way. It logs the stack of a long call, each time after twice as long, and ends the
container when a call has lasted for ``task.callback.timeout.ms``.
"""

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import get_ident
from types import FrameType

import pyarrow as pa

from homeport.container.adjunct.frames import NO_FRAMES, StoreFrames
from homeport.container.api import Timer
from homeport.container.processing.loop_dependencies import Pipeline, Task
from homeport.container.spark.inputs import Rows
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.ids import TaskName

_LOG = logging.getLogger(__name__)

_KEY = "task.callback.timeout.ms"
SAID_MS = 60_000
"""A call that has lasted for so long is logged."""
_STEP_S = 5.0
_CLOSE_STEP_S = 0.01
_PROJECT = "homeport."


@dataclass
class _Call:
    """A call under way. ``began_ms``: the begin of the call, or of its present part.

    ``ticks``: the ticks of the watch at its last look; None: the call has no parts.
    """

    what: str
    thread: int
    began_ms: int
    ticks: int | None
    say_ms: int = SAID_MS


class CallWatch:
    """Knows the calls under way; each may last for ``limit_ms``, None: for ever."""

    def __init__(self, limit_ms: int | None) -> None:
        self._limit_ms = limit_ms
        self._calls: dict[int, _Call] = {}
        self._is_over = threading.Event()
        self.ticks = 0
        """A StreamTask's loop adds one for each message, which is a call of its own."""

    def tick(self) -> None:
        """Begin the next part of a call that goes on from part to part."""
        self.ticks += 1

    @contextmanager
    def calling(self, what: str, *, goes_on: bool = False) -> Iterator[None]:
        """Watch the block as a call; if it ``goes_on``, each tick begins a new call."""
        thread = get_ident()
        self._calls[thread] = _Call(what, thread, boot_ms(), self.ticks if goes_on else None)
        try:
            yield
        finally:
            del self._calls[thread]

    def overdue(self, now_ms: int) -> str | None:
        """Log long calls; return why the container must end, in one line, or None."""
        for call in list(self._calls.values()):
            if call.ticks not in {None, self.ticks}:
                call.ticks, call.began_ms, call.say_ms = self.ticks, now_ms, SAID_MS
            lasted_ms = now_ms - call.began_ms
            if self._limit_ms is not None and lasted_ms >= self._limit_ms:
                frame = _frame_of(call.thread)
                self._say(call, lasted_ms, frame)
                return (
                    f"{call.what} has not returned within {_KEY} ({self._limit_ms}); it stands at "
                    f"{_place(frame)}; give what it waits for a time limit, or raise the key"
                )
            if lasted_ms >= call.say_ms:
                call.say_ms *= 2
                self._say(call, lasted_ms, _frame_of(call.thread))
        return None

    def begin(self, end: Callable[[str], object]) -> None:
        """Start the thread; it calls ``end`` once, with the reason why the container must end."""
        arguments = (end, min(_STEP_S, (self._limit_ms or SAID_MS) / 4000))
        threading.Thread(target=self._watch, args=arguments, name="call-watch", daemon=True).start()

    def close(self, limit_s: float) -> bool:
        """End the thread; return whether all calls have returned, within ``limit_s``."""
        self._is_over.set()
        pause, deadline = threading.Event(), time.monotonic() + limit_s
        while self._calls and time.monotonic() < deadline:
            pause.wait(_CLOSE_STEP_S)
        return not self._calls

    def _watch(self, end: Callable[[str], object], step_s: float) -> None:
        while (cause := self.overdue(boot_ms())) is None:
            if self._is_over.wait(step_s):
                return
        end(cause)

    @staticmethod
    def _say(call: _Call, lasted_ms: int, frame: FrameType | None) -> None:
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "no stack\n"
        _LOG.warning("%s has not returned for %.0f s:\n%s", call.what, lasted_ms / 1000, stack)


class WatchedTask:
    """A task whose calls are watched."""

    def __init__(self, task_name: TaskName, task: Task, watch: CallWatch) -> None:
        self._name = task_name
        self._task = task
        self._watch = watch

    def process_batch(self, rows: pa.Table) -> None:
        """Call the task with ``rows``."""
        with self._calling(f"its batch of {rows.num_rows} rows", goes_on=True):
            self._task.process_batch(rows)

    def end_transaction(self) -> None:
        """Give the task its last chance to send."""
        with self._calling("end_transaction"):
            self._task.end_transaction()

    def window(self) -> None:
        """Call the task for its window."""
        with self._calling("window"):
            self._task.window()

    def on_timer(self, timer: Timer) -> None:
        """Call the task for ``timer``."""
        with self._calling(f"on_timer of {timer.name!r}"):
            self._task.on_timer(timer)

    def end_of_stream(self) -> None:
        """End the input of the task."""
        with self._calling("end_of_stream"):
            self._task.end_of_stream()

    def close(self) -> None:
        """Close the task; ``task.shutdown.ms`` bounds it."""
        self._task.close()

    def _calling(self, step: str, *, goes_on: bool = False) -> AbstractContextManager[None]:
        return self._watch.calling(f"task {self._name!r}, in {step},", goes_on=goes_on)


class WatchedPipeline:
    """A pipeline whose runs are watched. ``name``: its configured name."""

    def __init__(self, pipeline: Pipeline, name: str, watch: CallWatch) -> None:
        self._pipeline = pipeline
        self._name = name
        self._watch = watch

    def run(self, given: Rows, stores: StoreFrames = NO_FRAMES) -> pa.Table:
        """Return the pipeline's rows, sorted by task."""
        with self._watch.calling(f"pipeline {self._name!r}, over {given.num_rows} rows,"):
            return self._pipeline.run(given, stores)


def _frame_of(thread: int) -> FrameType | None:
    return sys._current_frames().get(thread)  # noqa: SLF001 - a public function, written this way


def _place(frame: FrameType | None) -> str:
    """Return the innermost line of the job's own code, else the innermost of all."""
    if frame is None:
        return "an unknown line"
    found: FrameType | None = frame
    while found is not None and _is_library(found):
        found = found.f_back
    at = found or frame
    return f"{at.f_code.co_filename}:{at.f_lineno} in {at.f_code.co_name}"


def _is_library(frame: FrameType) -> bool:
    # A program of ours that runs as __main__ has its own name in its specification.
    spec = frame.f_globals.get("__spec__")
    name = spec.name if spec is not None else frame.f_globals.get("__name__", "")
    is_installed = "site-packages" in frame.f_code.co_filename
    is_standard = name.partition(".")[0] in sys.stdlib_module_names
    return is_installed or is_standard or name.startswith(_PROJECT)
