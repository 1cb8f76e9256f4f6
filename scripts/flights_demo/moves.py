"""An operator moves containers of the job that works (``scripts/demo --moves``).

Each command is the real ``homeport``: a warm move, a host that is drained and taken back, an
upgrade of the job's package. Nothing fails. The pause of each container that started again is read
from the history of all processes, and printed; the verdicts judge no times, as times depend on the
machine.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from check_history.pauses import Pause, pause_before

from flights_demo.screen import DemoError
from flights_demo.story import Containers, Story, is_tail, restores_of

_RECORDS_BEFORE = 20_000
_WATCH_MS = 5_000
_EDITION_IN, _EDITION = "reference_data.py", "\nEDITION = {}\n"
_LOGGED = "the package has edition 2"


class Moves(Story):
    """The commands, one after the other, and what came of them.

    ``next_package``: the folder to be made for the job's next edition; None: it has none.
    """

    SECONDS = 900
    CAME = "input came during each command"
    next_package: Path | None = None

    def play(self) -> None:
        """Each command has been given, and all containers work again."""
        self.wait_for("work", lambda: self.is_at_work(_RECORDS_BEFORE))
        commands = [("warm move", self._move), ("drain", self._drain)]
        if self.next_package is not None:
            commands.append(("upgrade", partial(self._upgrade, self.next_package)))
        pauses: list[tuple[str, Pause]] = []
        for name, command in commands:
            with self.screen.phase(name):
                before = self.containers()
                command(before)
                pauses += [(name, pause) for pause in self._pauses(before)]
        rows: list[tuple[str, ...]] = [("command", "processor", "from", "to", "pause")]
        rows += [
            (name, p.processor_id, p.source, p.target, f"{p.ms / 1000:5.2f} s")
            for name, p in pauses
        ]
        self.screen.table("From the last transaction before to the first one after", rows)

    def _move(self, before: Containers) -> None:
        """A container has gone where it had no state, and has read a tail there."""
        processor = min(p for p, c in before.items() if c["role"] == "active")
        there = self._destination(before, processor)
        self.homeport("move", processor, there, "--warm")
        self.job.wait_until_running(self.screen.progress)
        moved = self.containers()[processor]
        restored = restores_of(moved)
        text = (
            f"processor {processor} was moved warm to {there}, and its start there read"
            f" {sum(how['records'] for how in restored):,} records of changelogs"
        )
        self.judge(text, held=moved["host"] == there and is_tail(restored))

    def _destination(self, containers: Containers, processor: str) -> str:
        """A host that has nothing of the container: neither it nor, if it may be, its standby."""
        taken = {c["host"] for p, c in containers.items() if processor in {p, c["replica_of"]}}
        source = containers[processor]["host"]
        others = sorted(set(self.cluster.nodes) - {source})
        return next((node for node in others if node not in taken), others[0])

    def _drain(self, before: Containers) -> None:
        """A host, if it may be not the AM's, was left by all containers, and then taken back."""
        am, hosts = self.hosts_of_actives()
        node = min(hosts or {am})
        there = sorted(p for p, c in before.items() if c["host"] == node)
        self.homeport("drain", node)
        left = [p for p, c in self.containers().items() if c["host"] == node]
        is_drained = self.job.get("v1/status")["drained_hosts"] == [node]
        self.homeport("drain", node, "--undo")
        self.wait_for(f"{node} as a host", lambda: not self.job.get("v1/status")["drained_hosts"])
        self.job.wait_until_running(self.screen.progress)
        text = f"{node} was drained of processor {', '.join(there)}, and taken back"
        self.judge(text, held=is_drained and not left)

    def _upgrade(self, package: Path, before: Containers) -> None:
        make_next_edition(self.job.package, package)
        self.homeport("upgrade", f"--package={package}", f"--watch-ms={_WATCH_MS}")
        self.job.package = package
        self.job.wait_until_running(self.screen.progress)
        now = self.containers()
        packages = {c["package"] for c in now.values()}
        is_new = len(packages) == 1 and None not in packages
        is_logged = all(
            _LOGGED in self.job.homeport("logs", p, "--tail=0")
            for p, c in now.items()
            if c["role"] == "active"
        )
        again = sorted(p for p, c in now.items() if c["epoch"] != before[p]["epoch"])
        text = f"processor {', '.join(again)} has the job's next package, and its log says so"
        self.judge(text, held=is_new and is_logged and again == sorted(now))

    def _pauses(self, before: Containers) -> list[Pause]:
        again = {
            p: int(c["epoch"])
            for p, c in sorted(self.containers().items())
            if c["role"] == "active" and c["epoch"] != before[p]["epoch"]
        }
        found: list[Pause] = []

        def have_committed() -> bool:
            events = self.events()
            read = [pause_before(events, p, epoch) for p, epoch in again.items()]
            found[:] = [pause for pause in read if pause is not None]
            return len(found) == len(again)

        self.wait_for("first commits", have_committed)
        return found


def make_next_edition(package: Path, target: Path) -> None:
    """``target`` is a copy of the job's package that computes the same, and has another edition.

    DemoError: the package has no edition.
    """
    shutil.copytree(package, target)
    module = target / _EDITION_IN
    text = module.read_text(encoding="utf-8")
    changed = text.replace(_EDITION.format(1), _EDITION.format(2))
    if changed == text:
        raise DemoError(f"{module} has no line {_EDITION.format(1).strip()!r} to be changed")
    module.write_text(changed, encoding="utf-8")
