"""Tries mutants: each in forks of this process, some at a time, the quickest tests first."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mutation import trial
from mutation.host import Host
from mutation.mutants import Mutant
from mutation.recording import ROOT, Recorded
from mutation.results import Module, Result, Verdict
from mutation.trial import Outcome, Source

_WORLD = "tests/unit/world/"
"""These tests take most of the time; they come last."""
_LEAST_S = 20.0
_TIMES = 10.0
"""A trial may take so many times as long as its tests took when they were recorded, and more."""
_CHECK_S = 20.0
"""The tests that are first seen to pass on the unchanged tree took as long when recorded."""
_LEAST_HOSTED = 5
"""Of fewer mutants of a module, each is tried by an import of its own."""
_KEEP_EACH_S = 10.0
_TELL_EACH_S = 15.0


def stages(module: Module, tests: Sequence[str]) -> list[list[str]]:
    """Return the tests in up to three runs; each begins if those before have noticed nothing.

    First those of the module's own file, then all others, the world's last: each run imports the
    files of its tests.
    """
    name = f"/test_{module.path.stem}.py::"
    own = [t for t in tests if name in t and not t.startswith(_WORLD)]
    world = [t for t in tests if t.startswith(_WORLD)]
    others = [t for t in tests if t not in {*own, *world}]
    return [stage for stage in (own, others, world) if stage]


def affordable(tests: Sequence[str], seconds: Mapping[str, float], budget_s: float) -> list[str]:
    """Return the first tests that together take no longer than that; one at least."""
    sums = itertools.accumulate(seconds[test] for test in tests)
    number = sum(1 for passed_s in sums if passed_s <= budget_s)
    return list(tests[: max(number, 1)])


@dataclass
class Try:
    """One mutant and what is still to be run on it; ``is_hosted``: all at once first, in a host."""

    module: Module
    mutant: Mutant
    stages: list[list[str]]
    is_hosted: bool = False


@dataclass
class _Fork:
    pid: int
    descriptor: int
    answer: Path
    ends_s: float
    work: Try
    changed: Path | None = None


@dataclass
class Progress:
    """Says now and then how far it is."""

    total: int
    began_s: float = field(default_factory=time.monotonic)
    told_s: float = 0.0
    done: int = 0
    left: int = 0

    def add(self, result: Result) -> None:
        """Count one more that is decided."""
        self.done += 1
        self.left += result.verdict in {Verdict.SURVIVED, Verdict.UNCOVERED}
        now_s = time.monotonic()
        if now_s - self.told_s >= _TELL_EACH_S or self.done == self.total:
            self.told_s = now_s
            passed_s = now_s - self.began_s
            rest_s = passed_s / self.done * (self.total - self.done)
            print(
                f"{self.done} of {self.total} mutants, {self.left} not noticed; "
                f"{passed_s:.0f} s, about {rest_s:.0f} s more",
                flush=True,
            )


class Runner:
    """Tries the mutants of modules.

    Args:
        recorded: which tests there are, and how long they take.
        jobs: how many forks there are at most at a time.
        budget_s: how long the tests of one mutant may take, by what was recorded; those beyond,
            which are the slowest, are not run.
    """

    def __init__(self, recorded: Recorded, jobs: int, budget_s: float) -> None:
        self._recorded = recorded
        self._jobs = jobs
        self._budget_s = budget_s
        self._forks: dict[int, _Fork] = {}
        self._poll = select.poll()
        self._folder = Path(tempfile.mkdtemp(prefix="mutation-"))
        self._kept_s = time.monotonic()
        self._fit: set[str] = set()
        self._unfit: set[str] = set()
        self._touched: dict[str, Module] = {}
        self._hosted: dict[str, list[Mutant]] = {}
        self._host: tuple[str, Host | None] = ("", None)

    def require_sound(self, work: Sequence[tuple[Module, Mutant]]) -> None:
        """Check that the quickest tests for this work pass unchanged; leave out the others.

        SystemExit: none can be run: a file cannot be imported, or more is wrong.
        """
        tests = {test for module, mutant in work for test in self._tests(module, mutant)}
        quickest = sorted(tests, key=lambda test: self._recorded.seconds[test])
        checked = affordable(quickest, self._recorded.seconds, _CHECK_S)
        outcome = self._unchanged(checked) if checked else Outcome((), 0)
        if outcome.error or (outcome.failed and not outcome.passed):
            why = outcome.error or f"{outcome.failed[0]} fails"
            raise SystemExit(f"error: on the unchanged tree {why}")
        for test in outcome.failed:
            self._leave_out(test)
        self._fit.update({*checked} - self._unfit)
        for module in {module.shown: module for module, _ in work}.values():
            self._require_replaced(module)

    def _require_replaced(self, module: Module) -> None:
        """A module that cannot be imported is noticed, where any test runs it.

        SystemExit: it is not: the tests run on what is in the tree.
        """
        seconds = self._recorded.seconds
        tests = {test for mutant in module.mutants for test in self._tests(module, mutant)}
        quickest = sorted(tests, key=lambda test: seconds[test])[:1]
        broken = Source(module.name, "raise ImportError")
        if quickest and not self._at_once(broken, quickest).failed:
            raise SystemExit(f"error: {module.shown}: its tests run on another source than ours")

    def _unchanged(self, tests: Sequence[str]) -> Outcome:
        """How these tests go where nothing is changed."""
        return self._at_once(None, tests)

    def _at_once(self, source: Source | None, tests: Sequence[str]) -> Outcome:
        """How all of these tests go on the source; this process waits for it."""
        known = self._recorded.seconds
        answer = Path(tempfile.mkstemp(dir=self._folder)[1])
        pid = _forked(lambda: trial.run(source, tests, known, to_the_first=False), answer)
        os.waitpid(pid, 0)
        return _read(answer) or Outcome(("the process",), 0)

    def _is_fit(self, test: str) -> bool:
        """Whether the test, which has noticed a mutant, passes where nothing is changed."""
        if "::" in test and test not in self._fit:
            if self._unchanged([test]).failed:
                self._leave_out(test)
                return False
            self._fit.add(test)
        return True

    def _leave_out(self, test: str) -> None:
        self._unfit.add(test)
        print(f"left out, as it fails on the unchanged tree: {test}", flush=True)

    def try_all(self, work: Sequence[tuple[Module, Mutant]]) -> None:
        """Decide all of them, and write it to their modules' files; also when it is ended.

        KeyboardInterrupt: it was ended before.
        """
        progress = Progress(len(work))
        waiting = iter(work)
        for module, mutant in work:
            self._hosted.setdefault(module.shown, []).append(mutant)
        with self._ended():
            while True:
                while len(self._forks) < self._jobs and (item := next(waiting, None)):
                    self._begin(*item, progress)
                if not self._forks:
                    break
                self._await(progress)

    @contextmanager
    def _ended(self) -> Iterator[None]:
        """No fork is left, and what is known is kept."""
        try:
            yield
        finally:
            for fork in self._forks.values():
                _kill(fork.pid)
                _wait(fork.pid)
            self._end_host()
            self._keep()

    def _tests(self, module: Module, mutant: Mutant) -> list[str]:
        found = self._recorded.of_lines(module.path, mutant.first, mutant.last)
        fit = [test for test in found if test not in self._unfit]
        return affordable(fit, self._recorded.seconds, self._budget_s)

    def _begin(self, module: Module, mutant: Mutant, progress: Progress) -> None:
        work = Try(module, mutant, stages(module, self._tests(module, mutant)))
        if not work.stages:
            self._decide(work, Result(Verdict.UNCOVERED), progress)
        elif not self._start_hosted(work):
            self._start(work)

    def _start(self, work: Try) -> None:
        tests = work.stages.pop(0)
        source = Source(work.module.name, work.mutant.applied(work.module.source))
        answer = Path(tempfile.mkstemp(dir=self._folder)[1])
        pid = _forked(lambda: trial.run(source, tests, self._recorded.seconds), answer)
        self._follow(pid, answer, tests, work)

    def _start_hosted(self, work: Try) -> bool:
        """Whether all tests of the mutant run in a fork of its module's host."""
        host = self._host_of(work.module)
        if host is None:
            return False
        tests = [test for stage in work.stages for test in stage]
        answer, changed = (Path(tempfile.mkstemp(dir=self._folder)[1]) for _ in range(2))
        changed.write_text(work.mutant.applied(work.module.source), encoding="utf-8")
        pid = host.begin(changed, tests, answer)
        if pid is None:
            return False
        work.is_hosted = True
        self._follow(pid, answer, tests, work, changed)
        return True

    def _follow(
        self, pid: int, answer: Path, tests: list[str], work: Try, changed: Path | None = None
    ) -> None:
        limit_s = _LEAST_S + _TIMES * sum(self._recorded.seconds[test] for test in tests)
        fork = _Fork(pid, os.pidfd_open(pid), answer, time.monotonic() + limit_s, work, changed)
        self._forks[fork.descriptor] = fork
        self._poll.register(fork.descriptor, select.POLLIN)

    def _host_of(self, module: Module) -> Host | None:
        """The host of the module's tests, which is started where the last one was another's."""
        name, host = self._host
        if name == module.shown:
            return host
        self._end_host()
        due = self._hosted.get(module.shown, ())
        tests = {test for mutant in due for test in self._tests(module, mutant)}
        if len(due) >= _LEAST_HOSTED and tests:
            files = sorted({test.partition("::")[0] for test in tests})
            host = Host(_forked_alone, module.path, module.source, files)
        else:
            host = None
        self._host = module.shown, host
        return host

    def _end_host(self) -> None:
        host = self._host[1]
        if host is not None:
            host.close()
            _kill(host.pid)
            _wait(host.pid)
        self._host = "", None

    def _await(self, progress: Progress) -> None:
        """One fork at least has ended, or some time has passed."""
        for descriptor, _ in self._poll.poll(1000):
            self._over(self._forks[descriptor], progress)
        now_s = time.monotonic()
        for fork in [f for f in self._forks.values() if now_s >= f.ends_s]:
            _kill(fork.pid)
            fork.work.stages.clear()
            self._over(fork, progress, Result(Verdict.TIMED_OUT))
        if now_s - self._kept_s >= _KEEP_EACH_S:
            self._keep()

    def _over(self, fork: _Fork, progress: Progress, result: Result | None = None) -> None:
        self._poll.unregister(fork.descriptor)
        del self._forks[fork.descriptor]
        os.close(fork.descriptor)
        _kill(fork.pid)  # with all that its tests have left
        _wait(fork.pid)
        outcome = _read(fork.answer)
        fork.answer.unlink()
        if fork.changed is not None:
            fork.changed.unlink()
        if fork.work.is_hosted and result is None and (outcome is None or not outcome.failed):
            # What a host has not noticed, a trial of its own has to confirm.
            fork.work.is_hosted = False
            self._start(fork.work)
            return
        if result is None:
            result = verdict_of(outcome)
            if result.verdict is Verdict.SURVIVED and fork.work.stages:
                self._start(fork.work)
                return
            if not self._is_fit(result.by):
                self._begin(fork.work.module, fork.work.mutant, progress)
                return
        self._decide(fork.work, result, progress)

    def _decide(self, work: Try, result: Result, progress: Progress) -> None:
        work.module.results[work.mutant.key] = result
        self._touched[work.module.shown] = work.module
        progress.add(result)

    def _keep(self) -> None:
        self._kept_s = time.monotonic()
        for module in self._touched.values():
            module.keep()


def verdict_of(outcome: Outcome | None) -> Result:
    """Return what an outcome means; None: the fork has ended without a word."""
    if outcome is None:
        return Result(Verdict.KILLED, "it crashed")
    if outcome.failed:
        return Result(Verdict.KILLED, outcome.failed[0])
    if outcome.error:
        return Result(Verdict.KILLED, outcome.error)
    return Result(Verdict.SURVIVED)


def _forked(work: Callable[[], Outcome], answer: Path) -> int:
    """A fork of this process, in a group of its own, writes there what the work came to."""
    return _forked_alone(lambda: work().write(answer))


def _forked_alone(work: Callable[[], None]) -> int:
    """A fork of this process, in a group of its own, does the work."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.chdir(ROOT)
        work()
        code = 0
    finally:
        os._exit(code)


def _read(answer: Path) -> Outcome | None:
    text = answer.read_text(encoding="utf-8") if answer.exists() else ""
    if not text:
        return None
    stated = json.loads(text)
    return Outcome(tuple(stated["failed"]), stated["passed"], stated["error"])


def _kill(pid: int) -> None:
    """The fork and all processes of its group are gone; it is still to be waited for."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        # It has not made its group yet, or a host has reaped it.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _wait(pid: int) -> None:
    """It is reaped; a trial of a host's is reaped by that."""
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
