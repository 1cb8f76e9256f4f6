"""Lives at random of containers that build and serve versions, for ``test_versions_world``."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from homeport.container.adjunct.version_text import (
    catalogue_text,
    parse_catalogue,
    parse_parts,
    parts_text,
)
from homeport.container.adjunct.versions import (
    Catalogue,
    Marker,
    MarkerKind,
    Run,
    Versions,
    VersionVerdict,
    removable,
)
from homeport.container.storage.adjunct.versioned_store import dealt
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_parts_in = functools.cache(parse_parts)

Record = tuple[int, str, bytes | None, bytes | None]
"""(Offset, ``record``, ``begin`` or ``end``, key or number, value)."""
Content = Mapping[bytes, bytes | None]


@dataclass(frozen=True)
class Sent:
    """One version of a log at random: what it has, and from where on of each partition.

    ``content``: None: it has no end somewhere, or began again in the middle.
    """

    number: int
    content: Content | None
    starts: Mapping[SystemStreamPartition, int]


class RandomLog:
    """Up to seven versions in up to three partitions; some have no end, offsets have holes."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        count = dice.choice([1, 1, 2, 3])
        self.partitions = [SystemStreamPartition("kafka", "planes", n) for n in range(count)]
        self.records: dict[SystemStreamPartition, list[Record]] = {p: [] for p in self.partitions}
        self.versions: list[Sent] = []
        number = 0
        for _ in range(dice.randint(1, 7)):
            number += dice.randint(1, 3)
            self.versions.append(self._version(number))
        if count == 1:
            self.versions = list(self._counted())

    def _put(self, p: SystemStreamPartition, kind: str, key: bytes, value: bytes | None) -> int:
        offset = self.end(p) + self._dice.choice([0, 0, 0, 1, 2])
        self.records[p].append((offset, kind, key, value))
        return offset

    def end(self, partition: SystemStreamPartition) -> int:
        """Behind its last record."""
        own = self.records[partition]
        return own[-1][0] + 1 if own else 0

    def _version(self, number: int) -> Sent:
        dice, content, starts, is_whole = self._dice, {}, {}, True
        for p in self.partitions:
            mark = b"%d" % number
            if len(self.partitions) > 1 or dice.random() < 0.5:
                starts[p] = self._put(p, "begin", mark, None)
            for index in range(dice.randint(0, 5)):
                key = b"%d/%d" % (p.partition, dice.randint(0, 6))
                value = None if dice.random() < 0.15 else b"%d.%d" % (number, index)
                self._put(p, "record", key, value)
                content[key] = value
            if dice.random() < 0.8:
                self._put(p, "end", mark, None)
            else:
                is_whole = False
        return Sent(number, _held(content) if is_whole else None, starts)

    def _counted(self) -> Iterator[Sent]:
        """By markers alone, as those of one partition are."""
        (partition,) = self.partitions
        content: dict[bytes, bytes | None] = {}
        number, start, count = 1, 0, 0
        for offset, kind, key, value in self.records[partition]:
            if kind == "record":
                content[key or b""], count = value, count + 1
                continue
            if kind == "begin" and not count:
                start = offset
                continue
            whole = _held(content) if kind == "end" else None
            yield Sent(number, whole, {partition: start})
            content, number, start, count = {}, number + 1, offset, 0


def _held(content: Content) -> Content:
    return {key: value for key, value in content.items() if value is not None}


class Life:
    """Containers that follow one log at random, each on the disk that the one before left.

    Of each store any prefix of what was written since its flush is on the disk after a crash.
    """

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - no secret
        self._log = RandomLog(self._dice)
        self._oldest = dict.fromkeys(self._log.partitions, 0)
        self._catalogue = Catalogue()
        self._written: dict[int, list[tuple[Content, str]]] = {}
        self._crashes, self._gaps = self._dice.randint(0, 6), self._dice.choice([0, 0, 1, 2])
        self._start()

    def _start(self) -> None:
        self._written = {n: [self._dice.choice(past)] for n, past in self._written.items()}
        self._catalogue = parse_catalogue(catalogue_text(self._catalogue))
        for number in removable(self._catalogue, self._written):
            del self._written[number]
        stores = {n: _parts_in(past[-1][1]) for n, past in self._written.items()}
        versions = Versions.found(self._log.partitions, self._catalogue, stores)
        for partition in self._log.partitions:
            versions = versions.begun(partition, 0)
        self._versions, self._shown = versions, self._catalogue.served
        self._next = {p: versions.cursor(p).next for p in self._log.partitions}

    def run(self) -> None:
        """All of the log is read; AssertionError where something else is shown than a version."""
        while True:
            self._judge()
            if self._is_time(0.15):
                self._start()
                continue
            verdict = self._versions.verdict(0)
            if verdict is not None and self._dice.random() < 0.6:
                self._carry_out(verdict)
                continue
            self._delete()
            left = [p for p, at in self._next.items() if at < self._log.end(p)]
            if left:
                self._read(self._dice.choice(left))
            elif verdict is None:
                break
        self._require_newest()

    def _is_time(self, chance: float) -> bool:
        is_time = self._crashes > 0 and self._dice.random() < chance
        self._crashes -= is_time
        return is_time

    def _delete(self) -> None:
        """Retention takes what one partition has not read yet."""
        if self._gaps and self._dice.random() < 0.05:
            self._gaps -= 1
            partition = self._dice.choice(self._log.partitions)
            at = self._next[partition] + self._dice.randint(1, 6)
            if at <= self._log.end(partition):
                self._oldest[partition] = max(self._oldest[partition], at)

    def _carry_out(self, verdict: VersionVerdict) -> None:
        if verdict.fault is None:
            self._written[verdict.number] = self._written[verdict.number][-1:]
        if self._is_time(0.3):
            self._start()
            return
        self._versions = self._versions.decided(verdict)
        self._catalogue = self._versions.catalogue
        if self._is_time(0.3):
            self._start()
            return
        self._shown = self._catalogue.served
        for number in removable(self._catalogue, self._written):
            del self._written[number]

    def _read(self, partition: SystemStreamPartition) -> None:
        following, oldest = self._next[partition], self._oldest[partition]
        gone_below = oldest if following < oldest else 0
        again = 3 if self._dice.random() < 0.1 and not gone_below else 0
        start = max(following, oldest) - again
        own = [r for r in self._log.records[partition] if r[0] >= start][: self._dice.randint(1, 6)]
        markers: dict[int, Marker | None] = {}
        for index, (_, kind, mark, _) in enumerate(own):
            if kind != "record":
                own_number = None if len(self._next) == 1 else int(mark or b"")
                markers[index] = Marker(MarkerKind(kind), own_number)
        offsets = [offset for offset, *_ in own]
        taken = self._versions.take(Run(partition, offsets, offsets, markers, gone_below))
        entries = dealt(taken, [key for _, _, key, _ in own], [value for *_, value in own])
        for number in taken.parts:
            before: Content = self._written[number][-1][0] if number in self._written else {}
            image = {**before, **entries.get(number, {})}
            text = parts_text(taken.versions.building[number])
            # Of a new one the first is flushed: some prefix is always there.
            self._written.setdefault(number, []).append((image, text))
        self._versions = taken.versions
        self._next[partition] = max(following, oldest, *(o + 1 for o in offsets))
        if self._written and self._dice.random() < 0.2:
            number = self._dice.choice(sorted(self._written))
            self._written[number] = self._written[number][-1:]

    def _judge(self) -> None:
        if self._shown is None:
            return
        found = _held(self._written[self._shown][-1][0])
        good = [sent for sent in self._log.versions if sent.content == found]
        if len(self._log.partitions) > 1:
            good = [sent for sent in good if sent.number == self._shown]
        assert good, f"version {self._shown} is shown with {found}"

    def _require_newest(self) -> None:
        """Tasks see the newest version without unread deletions, or a newer one."""
        whole = [
            index
            for index, sent in enumerate(self._log.versions)
            if sent.content is not None
            and all(at >= self._oldest[p] for p, at in sent.starts.items())
        ]
        if not whole:
            return
        assert self._shown is not None, "no version is shown"
        found = _held(self._written[self._shown][-1][0])
        newer = [sent.content for sent in self._log.versions[whole[-1] :]]
        assert found in newer, f"version {self._shown} is shown, and not the newest"
