"""An operator moves containers of the job that works (``scripts/demo --moves``).

Each command is the real ``homeport``: a warm move, a host that is drained and taken back, an
upgrade of the job's package. Nothing fails. The pause of each container that started again is read
from the history of all processes, and printed; the verdicts judge no times, as times depend on the
machine.
"""

from __future__ import annotations

import shutil
import urllib.parse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from check_history.pauses import Pause, pause_before
from check_history.reading import read_jobs

from flights_demo.clusters import DemoCluster
from flights_demo.common import await_that
from flights_demo.fail_host import is_tail
from flights_demo.job import DemoJob
from flights_demo.screen import DemoError, Screen
from flights_demo.verdict import Reader, next_offsets

SECONDS = 900
"""For so long, roughly, input should come, on a slow machine too; then the rest comes at once."""

_RECORDS_BEFORE = 20_000
_WATCH_MS = 5_000
_EDITION_IN, _EDITION = "reference_data.py", "\nEDITION = {}\n"
_LOGGED = "the package has edition 2"

Containers = dict[str, dict[str, Any]]
"""{processor: what the status says of it}."""


class Moves:
    """The commands, one after the other, and what came of them."""

    def __init__(
        self,
        cluster: DemoCluster,
        job: DemoJob,
        reader: Reader,
        screen: Screen,
        *,
        next_package: Path | None,
    ) -> None:
        """``next_package``: the folder to be made for the job's next edition; None: it has none."""
        self._cluster = cluster
        self._job = job
        self._reader = reader
        self._screen = screen
        self._next_package = next_package
        self._pauses: list[tuple[str, Pause]] = []
        self.verdicts: list[tuple[str, bool]] = []

    def run(self) -> None:
        """Each command has been given, and all containers work again.

        Raises:
            DemoError: a command is refused, or the job does not come to work again.
        """
        self._await(self._is_at_work, "work")
        commands = [("warm move", self._move), ("drain", self._drain)]
        if self._next_package is not None:
            commands.append(("upgrade", partial(self._upgrade, self._next_package)))
        for name, command in commands:
            with self._screen.phase(name):
                before = self._containers()
                command(before)
                self._note_pauses(name, before)
        self._tell_pauses()

    # ------------------------------------------------------------------ commands

    def _move(self, before: Containers) -> None:
        """A container has gone where it had no state, and has read a tail there."""
        processor = min(p for p, c in before.items() if c["role"] == "active")
        there = self._destination(before, processor)
        self._homeport("move", processor, there, "--warm")
        self._job.wait_until_running(self._screen.progress)
        moved = self._containers()[processor]
        restored = [how for tasks in moved["restored"].values() for how in tasks.values()]
        records = sum(how["records"] for how in restored)
        text = (
            f"processor {processor} was moved warm to {there}, and its start there read"
            f" {records:,} records of changelogs"
        )
        self.verdicts.append((text, moved["host"] == there and is_tail(restored)))

    def _destination(self, containers: Containers, processor: str) -> str:
        """A host that has nothing of the container: neither it nor, if it may be, its standby."""
        taken = {c["host"] for p, c in containers.items() if processor in {p, c["replica_of"]}}
        source = containers[processor]["host"]
        others = sorted(set(self._cluster.nodes) - {source})
        return next((node for node in others if node not in taken), others[0])

    def _drain(self, before: Containers) -> None:
        """A host has been left by all containers, and was then taken back."""
        node = self._drained(before)
        there = sorted(p for p, c in before.items() if c["host"] == node)
        self._homeport("drain", node)
        left = [p for p, c in self._containers().items() if c["host"] == node]
        is_drained = self._job.get("v1/status")["drained_hosts"] == [node]
        self._homeport("drain", node, "--undo")
        self._await(lambda: not self._job.get("v1/status")["drained_hosts"], f"{node} as a host")
        self._job.wait_until_running(self._screen.progress)
        text = f"{node} was drained of processor {', '.join(there)}, and taken back"
        self.verdicts.append((text, is_drained and not left))

    def _drained(self, containers: Containers) -> str:
        """A host of an active container; if it may be, not that of the AM, which stays there."""
        address = urllib.parse.urlsplit(self._job.url).hostname
        nodes = self._cluster.status()["nodes"]
        am = next(node["host"] for node in nodes if node["address"] == address)
        hosts = {c["host"] for c in containers.values() if c["role"] == "active"}
        return str(min(hosts - {am} or hosts))

    def _upgrade(self, package: Path, before: Containers) -> None:
        """Each container has the job's next edition, one after the other."""
        make_next_edition(self._job.package, package)
        self._homeport("upgrade", f"--package={package}", f"--watch-ms={_WATCH_MS}")
        self._job.package = package
        self._job.wait_until_running(self._screen.progress)
        now = self._containers()
        packages = {c["package"] for c in now.values()}
        is_new = len(packages) == 1 and None not in packages
        is_logged = all(
            _LOGGED in self._job.homeport("logs", p, "--tail=0")
            for p, c in now.items()
            if c["role"] == "active"
        )
        again = sorted(p for p, c in now.items() if c["epoch"] != before[p]["epoch"])
        text = f"processor {', '.join(again)} has the job's next package, and its log says so"
        self.verdicts.append((text, is_new and is_logged and again == sorted(now)))

    def _homeport(self, *words: str) -> None:
        self._screen.say(f"homeport {' '.join(words)}")
        for line in self._job.homeport(*words).splitlines():
            self._screen.say(f"  {line}")

    # ------------------------------------------------------------------ pauses

    def _note_pauses(self, name: str, before: Containers) -> None:
        """Of each active container that has another epoch than before."""
        now = self._containers()
        again = {
            p: int(c["epoch"])
            for p, c in now.items()
            if c["role"] == "active" and c["epoch"] != before[p]["epoch"]
        }
        found: dict[str, Pause] = {}

        def have_committed() -> bool:
            found.update(self._read_pauses(again))
            return found.keys() == again.keys()

        self._await(have_committed, "first commits")
        self._pauses += [(name, found[p]) for p in sorted(found)]

    def _read_pauses(self, epochs: Mapping[str, int]) -> dict[str, Pause]:
        folders = [self._cluster.state_dir(node) for node in self._cluster.nodes]
        events = read_jobs(folders, "boot", 0)[0].events
        read = {p: pause_before(events, p, epoch) for p, epoch in epochs.items()}
        return {p: pause for p, pause in read.items() if pause is not None}

    def _tell_pauses(self) -> None:
        rows: list[tuple[str, ...]] = [("command", "processor", "from", "to", "pause")]
        rows += [
            (name, p.processor_id, p.source, p.target, f"{p.ms / 1000:5.2f} s")
            for name, p in self._pauses
        ]
        self._screen.table("From the last transaction before to the first one after", rows)

    # ------------------------------------------------------------------ looks

    def _is_at_work(self) -> bool:
        """All run, and a part of the input is consumed."""
        return (
            all(c["phase"] == "running" for c in self._containers().values())
            and sum(next_offsets(self._reader).values()) >= _RECORDS_BEFORE
        )

    def _containers(self) -> Containers:
        return {c["processor_id"]: c for c in self._job.containers()}

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        await_that(condition, what, self._screen)


def make_next_edition(package: Path, target: Path) -> None:
    """``target`` is a copy of the job's package that computes the same, and has another edition.

    Raises:
        DemoError: the package has no edition.
    """
    shutil.copytree(package, target)
    module = target / _EDITION_IN
    text = module.read_text(encoding="utf-8")
    changed = text.replace(_EDITION.format(1), _EDITION.format(2))
    if changed == text:
        raise DemoError(f"{module} has no line {_EDITION.format(1).strip()!r} to be changed")
    module.write_text(changed, encoding="utf-8")
