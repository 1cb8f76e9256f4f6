"""Section full: whole changelogs into empty stores, and a store that comes home."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bed import broker, scratch
from benchmarks.processes import result_of
from benchmarks.report import Row, at_least, at_most, figure, table
from benchmarks.restore.stores import RECORDS, TOPIC, Restore, Stores
from homeport.container.progress.restore_schedule import WORKER_MB
from homeport.container.restore.restore_workers import MALLOC_SETTINGS

_TITLE = (
    "Full restore of 1,000,000 x 1 KiB, distinct keys in random order, random values (3 rounds, "
    "each figure their median)"
)
_ROUNDS = 3
_STAGES = {
    "consume": "consume: keys and values of 1000 records",
    "write": "batch built and written to the memory table",
    "flush": "last flush",
    "merge": "merge of what is too much",
}


def rows() -> Iterator[Row]:
    """Rates, ratios and CPU; the stages of a worker; two stores at once; coming home."""
    os.environ.update(MALLOC_SETTINGS)  # the loops' processes have what a worker has
    with scratch() as folder, broker() as started:
        stores = Stores(started.bootstrap_servers, folder / "stores", 2)
        stores.fill_changelog()
        yield from _rounds(stores, folder)


def _rounds(stores: Stores, folder: Path) -> Iterator[Row]:
    loops: dict[str, list[dict[str, Any]]] = {"discard": [], "put": [], "stages": []}
    alone: list[Restore] = []
    together: list[Restore] = []
    for _ in range(_ROUNDS):
        for name, found in loops.items():
            path = folder / name
            shutil.rmtree(path, ignore_errors=True)
            arguments = (stores.servers, TOPIC, RECORDS, str(path))
            found.append(result_of(f"restore.changelog_loops.{name}", *arguments))
            shutil.rmtree(path, ignore_errors=True)
        together.append(stores.restore(2))
        alone.append(stores.restore(1))
    yield from _rates(loops, alone)
    yield from _of_stages(loops["stages"])
    one_s = median(restore.seconds for restore in alone)
    both_s = median(restore.seconds for restore in together)
    yield figure("two stores at once, both", 2 * RECORDS / both_s, "records/s")
    yield figure("two at once, against one after the other", 2 * one_s / both_s, "x")
    peak = max(restore.peak_mb for restore in (*alone, *together))
    yield at_most("resident memory of a worker, at its peak", peak, WORKER_MB, "MB")
    home = stores.restore(1, is_new=False)
    yield at_most("coming home with 1 GB: changelog records read", home.records, 0, "")
    yield at_most("coming home with 1 GB: open and validate", home.seconds, 2, "s")


def _rates(loops: dict[str, list[dict[str, Any]]], alone: list[Restore]) -> Iterator[Row]:
    restore = median(found.seconds for found in alone)
    seconds = {name: median(one["seconds"] for one in found) for name, found in loops.items()}
    for name, what in (("put", "put, record by record"), ("discard", "discard")):
        yield figure(f"consume and {what}", RECORDS / seconds[name], "records/s")
        yield figure("  CPU", median(one["cpu_s"] for one in loops[name]), "s")
    yield figure("restore, from locks to OFFSET", RECORDS / restore, "records/s")
    yield figure("  CPU, its worker's included", median(found.cpu_s for found in alone), "s")
    yield at_least("restore against consume and put", seconds["put"] / restore, 2, "x")
    yield at_least("restore against consume and discard", seconds["discard"] / restore, 0.4, "x")


def _of_stages(found: list[dict[str, Any]]) -> Iterator[Row]:
    ran = "    of which it ran; it waited for the rest"
    whole = "  CPU of all that, with the threads of client and RocksDB"
    medians = {name: median(one[name] for one in found) for name in found[0]}
    for name, about in _STAGES.items():
        yield from table(medians, (f"  {about}", name, "s", None), (ran, f"{name}_ran", "s", None))
    yield figure(whole, medians["cpu_s"], "s")


SECTIONS = {"full": (_TITLE, rows)}
