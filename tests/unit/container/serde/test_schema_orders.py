"""All orders of a few schemas: a container is refused, or reads each value as it was written.

So with each rule of ``container/serde/evolution`` that is at stake: without it an order goes wrong.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from small_jobs import LOGGED, job_of, store_keys
from stores_in_memory_log import CONFIG, Log, storage_of
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import ConfigError, WireError
from homeport.config.settings.serde_names import SchemaSerde
from homeport.container.incarnation import start_up
from homeport.container.incarnation.start_up import require_forms
from homeport.container.serde.evolution import marked_avro, readable
from homeport.container.serde.forms import form_of, shown
from homeport.container.serde.serdes import Serde
from homeport.job_coordinator.metadata.state_facts import StateFactManager

pytestmark = pytest.mark.search

SCHEMA = "serializers.registry.rec.schema"
KEYS = {
    **LOGGED,
    **store_keys(msg_serde="rec", changelog="kafka.s"),
    "serializers.registry.rec.class": "avro",
}


def _record(*fields: tuple[str, str, int | None]) -> str:
    parts = [
        {"name": name, "type": kind} | ({} if default is None else {"default": default})
        for name, kind, default in fields
    ]
    return json.dumps({"type": "record", "name": "R", "fields": parts})


Code = tuple[str, dict[str, Any]]
"""A schema, and the value that a container of it writes."""
NARROW: Code = _record(("n", "int", None)), {"n": 5}
MORE: Code = _record(("m", "int", 7), ("n", "int", None)), {"n": 6, "m": 8}
WIDE: Code = _record(("n", "long", None)), {"n": 2**40}
OTHER: Code = _record(("n", "string", None)), {"n": "x"}
SCHEMAS: tuple[Code, ...] = (NARROW, MORE, WIDE, OTHER)


class World:
    """One store, whose containers come one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stream = InMemoryCoordinatorStream()
        self.written: list[tuple[bytes, dict[str, Any]]] = []

    def start(self, schema: str, *, is_admitted: bool) -> Serde:
        """Start a container; ConfigError: it is refused."""
        self.stream.catch_up()
        if is_admitted:
            form = shown(form_of(SchemaSerde("avro", "rec", schema)))
            self.stream.write([StateFactManager.announcement("kafka.s", form)])
            self.stream.catch_up()
        job, storage = job_of({**KEYS, SCHEMA: schema}), storage_of(self.folder, Log(), CONFIG)
        require_forms(self.stream, job, storage)
        return job.serdes(job.stores[0], storage.writers.get("s", ()))[1]

    def run(self, code: Code, *, is_admitted: bool) -> bool:
        """Let a container read all values and write one; return whether it was not refused."""
        schema, value = code
        try:
            serde = self.start(schema, is_admitted=is_admitted)
        except ConfigError:
            return False
        for data, was in self.written:
            kept = {name: was.get(name, 7) for name in value}
            assert serde.from_bytes(data) == kept, (schema, was)
        self.written.append((serde.to_bytes(value), value))
        return True


def search(folder: Path) -> int:
    """Try all orders; return how many containers have run.

    A change that no command has admitted has a way back: the code before it runs again.
    """
    count = 0
    for order in product(product(SCHEMAS, (False, True)), repeat=3):
        world, last = World(folder), list[Code]()
        for code, is_admitted in order:
            has_run = world.run(code, is_admitted=is_admitted)
            count += has_run
            if has_run and last and not is_admitted:
                assert world.run(last[-1], is_admitted=False), (last[-1], code)
            last += [code] if has_run else []
    return count


def test_a_container_reads_each_value_or_is_refused(tmp_path: Path) -> None:
    """In most of the 512 orders of three containers, one runs."""
    assert search(tmp_path) > 700


def _all_is_read(patch: pytest.MonkeyPatch) -> None:
    """No schema is compared."""
    patch.setattr(readable, "_fault", lambda *_: None)


def _one_way(patch: pytest.MonkeyPatch) -> None:
    """A container is judged as run-job judges."""
    patch.setattr(start_up, "require_admitted", readable.require_readable)


def _no_marks(patch: pytest.MonkeyPatch) -> None:
    """Values of later schemas have no mark."""
    plain = marked_avro.marked_avro

    def unmarked(entry: SchemaSerde, serde: Serde, writers: Sequence[str]) -> Serde:
        return replace(plain(entry, serde, writers), to_bytes=serde.to_bytes)

    patch.setattr("homeport.container.container_job.marked_avro", unmarked)


def _own_schema_reads(patch: pytest.MonkeyPatch) -> None:
    """Each value is read by the schema of its reader."""
    patch.setattr("homeport.container.container_job.marked_avro", lambda _, serde, __: serde)


@pytest.mark.parametrize("mutant", [_all_is_read, _one_way, _no_marks, _own_schema_reads])
def test_a_rule_that_is_taken_out_is_missed(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Some order then has a value that is read as another, or not at all."""
    mutant(monkeypatch)
    with pytest.raises((AssertionError, WireError)):
        search(tmp_path)
