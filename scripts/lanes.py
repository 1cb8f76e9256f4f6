"""Several pytests side by side, told as one: each speaks when those before it have ended.

The last line is a closing line as pytest's own, with the counts of all of them.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

_CLOSING = re.compile(r"^=* ?((?:\d+ \w+(?:, )?)+|no tests ran) in [\d.]+s\b.*?=*$")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NO_TESTS = 5
"""pytest's exit code for an empty selection."""
_DESELECTED = "deselected"
_NO_RUN = {_DESELECTED, "warning", "warnings"}
_ORDER = "failed passed skipped deselected xfailed xpassed warnings errors "
"""As pytest has them in its closing line; what it may have beside them comes last."""
_WIDTH = 80
_LOOK_S = 0.2


@dataclass
class Lane:
    """One pytest and what it said: ``counts`` {"passed": how many, ...}, None: it never closed."""

    name: str
    command: Sequence[str]
    counts: Counter[str] | None = field(default=None, init=False)

    def read(self, output: str) -> None:
        """All that it said, to its end."""
        for line in output.splitlines():
            found = _CLOSING.match(_COLOURS.sub("", line.strip()))
            if found:
                words = (part.split() for part in found[1].split(", ") if part[:1].isdigit())
                self.counts = Counter({what: int(number) for number, what in words})


def run_side_by_side(lanes: Sequence[Lane], env: Mapping[str, str]) -> int:
    """Exit code: 0 if all were content, and any of them ran a test."""
    began = time.monotonic()
    with contextlib.ExitStack() as kept:
        told = [Path(kept.enter_context(tempfile.NamedTemporaryFile()).name) for _ in lanes]
        running = [_start(*pair, env) for pair in zip(lanes, told, strict=True)]
        kept.enter_context(_signals_handed_on(running))
        for lane, output, process in zip(lanes, told, running, strict=True):
            print(f"----- lane {lane.name} -----", flush=True)
            _follow(output, process)
            lane.read(output.read_text(errors="replace"))
    codes = [process.returncode for process in running]
    print(_closing(lanes, codes, time.monotonic() - began), flush=True)
    return _code(codes)


def _start(lane: Lane, output: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Its output goes to a file: what a test has left running would hold a pipe open for ever."""
    with output.open("wb") as told:
        return subprocess.Popen(
            lane.command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.STDOUT,
            process_group=0,  # Ctrl-C comes once, from here
        )


@contextlib.contextmanager
def _signals_handed_on(running: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the lanes in order; this process outlives them to tell of it."""

    def hand_on(_number: int, _frame: FrameType | None) -> None:
        for process in running:
            process.send_signal(signal.SIGINT)

    before = {n: signal.signal(n, hand_on) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(output: Path, process: subprocess.Popen[bytes]) -> None:
    """All that it says, as it says it, to its end."""
    with output.open(errors="replace") as told:
        is_over = False
        while not is_over:
            is_over = process.poll() is not None
            sys.stdout.write(told.read())
            sys.stdout.flush()
            if not is_over:
                time.sleep(_LOOK_S)


def _closing(lanes: Sequence[Lane], codes: Sequence[int], seconds: float) -> str:
    silent = [
        f"lane {lane.name} ended with code {code} before pytest"
        for lane, code in zip(lanes, codes, strict=True)
        if lane.counts is None
    ]
    all_counts = [lane.counts for lane in lanes if lane.counts is not None]
    counts = sum(all_counts, Counter[str]())
    # What one lane leaves to the others is run all the same.
    others = (n for c in all_counts[:-1] for what, n in c.items() if what not in _NO_RUN)
    counts[_DESELECTED] = all_counts[-1][_DESELECTED] - sum(others) if all_counts else 0
    counts = +counts
    order = sorted(counts, key=lambda what: (_ORDER + what).index(what))
    told = ", ".join(f"{counts[what]} {what}" for what in order)
    if silent or not told:
        told = "no tests ran"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    closing = f" {told} in {seconds:.2f}s ({hours}:{minutes:02}:{rest:02}) "
    return "\n".join([*silent, closing.center(_WIDTH, "=")])


def _code(codes: Sequence[int]) -> int:
    """The first that is not content; an empty selection counts only where every lane had one."""
    bad = [code for code in codes if code not in {0, _NO_TESTS}]
    if bad:
        return bad[0]
    return _NO_TESTS if all(code == _NO_TESTS for code in codes) else 0
