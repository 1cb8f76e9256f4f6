"""Does each standby hold what its active one does? Answers from the directories and the status.

Copies of the directories are opened, as the containers keep the stores open.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocksdict import AccessType, Options, Rdict

from flights_demo.screen import DemoError
from flights_demo.story import Containers, Story
from flights_demo.tasks import active_tasks, owners_of, standby_tasks
from flights_demo.verdict import CHANGELOGS
from homeport.container.progress import offset_file

OVERRIDES = ("job.hotstandby.enabled=true",)
CALM_LIMIT_S = 90.0

PARTITIONED, SHARED = "planes", ("airports", "airlines")
"""Stores that a stream fills: of each task, and of each container."""

_RESERVED = b"\x00homeport."
"""So begin the keys of entries that say how far a store is."""


@dataclass(frozen=True)
class Replica:
    """One store of a task or a container: where the active one keeps it, and its standby.

    ``partition``: of its changelog; -1: another stream fills it.
    """

    store: str
    owner: str
    partition: int
    active: Path
    standby: Path
    hosts: tuple[str, str]


class Standbys(Story):
    """Looks once the job is calm: all input is consumed, and no container writes any more."""

    def play(self) -> None:
        """Judge the promises about standbys; a table shows each store."""
        replicas = list(self._replicas(self.containers()))
        self._wait_for_calm([replica for replica in replicas if replica.partition >= 0])
        lags = self.lags()
        rows: list[tuple[str, ...]] = [("store", "of", "active on", "standby on", "keys", "")]
        is_equal, total = True, 0
        for replica in replicas:
            active, standby = _entries(replica.active), _entries(replica.standby)
            total += len(active)
            is_equal &= active == standby
            found = "equal" if active == standby else f"DIFFERENT: {len(standby)} keys"
            rows.append((replica.store, replica.owner, *replica.hosts, f"{len(active):,}", found))
        self.screen.table("Stores of actives and their standbys", rows)
        for name, lag in sorted(lags.items()):
            self.screen.say(f"standby {name} is behind by {lag} records")
        apart = all(replica.hosts[0] != replica.hosts[1] for replica in replicas)
        every = f"every standby holds what its active does: {total:,} keys"
        self.judge(every, held=is_equal and bool(rows))
        self.judge("no standby is behind", held=bool(lags) and not any(lags.values()))
        self.judge("no standby is on the host of its active", held=apart)

    def _replicas(self, containers: Containers) -> Iterator[Replica]:
        """What tasks have is kept by standbys; what a container has, by standby containers."""
        model = self.job.get("")
        owners, kept = owners_of(active_tasks(model)), owners_of(standby_tasks(model))
        for task, owner in sorted(owners.items()):
            hosts = containers[owner]["host"], containers[kept[task]]["host"]
            stated = model["containers"][owner]["tasks"][task]
            for store in CHANGELOGS:
                yield self._replica(store, task, hosts, stated["changelog-partition"])
            yield self._replica(PARTITIONED, task, hosts)
        for _, container in sorted(containers.items()):
            active = container["replica_of"]
            if active is not None:
                hosts = containers[active]["host"], container["host"]
                for store in SHARED:
                    yield self._replica(store, f"container-{active}", hosts)

    def _replica(
        self, store: str, owner: str, hosts: tuple[str, str], partition: int = -1
    ) -> Replica:
        below = Path("flights-1", store, owner.replace(" ", "_"))
        active, standby = (self.cluster.state_dir(host) / below for host in hosts)
        return Replica(store, owner, partition, active, standby, hosts)

    def _wait_for_calm(self, replicas: list[Replica]) -> None:
        """What Kafka has is in all directories, as OFFSET says, and the status shows no lag."""
        heads = {
            (replica.store, replica.partition): self.reader.last_offset(
                CHANGELOGS[replica.store], replica.partition
            )
            for replica in replicas
        }
        deadline = time.monotonic() + CALM_LIMIT_S
        while True:
            behind = [
                f"{place.parent.name}/{place.name}"
                for replica in replicas
                for place in (replica.active, replica.standby)
                if _offset(place) < heads[replica.store, replica.partition]
            ]
            lags = list(self.lags().values())
            if not behind and not any(lags) and None not in lags:
                return
            if time.monotonic() > deadline:
                raise DemoError(f"standbys are not calm: behind {behind}, lags {lags}")
            self.screen.progress(f"waiting for {len(behind)} directories, lags {lags}")
            time.sleep(0.3)  # files and the status page are polled; they have no event


def _offset(directory: Path) -> int:
    """What OFFSET says; -1 where there is none, as of a store that was never written to."""
    try:
        return int(offset_file.decode((directory / "OFFSET").read_bytes()))
    except FileNotFoundError:
        return -1


def _entries(directory: Path) -> dict[Any, Any]:
    """Every key and value of a store's directory, as its owner last flushed it.

    Of a store with versions {(version, key): value}.
    """
    versions = sorted(directory.glob("v[0-9]*"))
    if versions:
        return {
            (version.name, key): value
            for version in versions
            for key, value in _entries(version).items()
        }
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(directory, copy)
        store = Rdict(str(copy), Options(raw_mode=True), access_type=AccessType.read_only())
        found: dict[Any, Any] = dict(store.items())
        store.close()
    return {key: value for key, value in found.items() if not key.startswith(_RESERVED)}
