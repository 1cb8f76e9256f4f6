"""Directories of adjunct stores as they are seen beside their owner."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.config.errors import StoreError
from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.container.adjunct.recovery import META_FILE, NO_STORE, expected_meta
from homeport.container.adjunct.version_text import CATALOGUE_FILE
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.refusal import RefusalReason
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage
from homeport.container.storage.adjunct.store_look import AdjunctLook, VisibleView, is_adjunct, look
from homeport.container.storage.task_store import passed
from tests.unit.container.storage.adjunct.adjunct_hosts import P0, PLANES, Host, fill, take


def _flush(storage: AdjunctStorage) -> None:
    storage.switch_versions(passed, passed)
    storage.flush(passed, passed)


def _seen(path: Path) -> dict[bytes, bytes]:
    """What tasks see, read beside the container."""
    with closing(VisibleView(path, "rocksdb")) as view:
        assert view.position is None
        found = dict(view.scan())
        assert all(view.get(key) == value for key, value in found.items())
        return found


def _look(host: Host, path: Path | None = None) -> AdjunctLook:
    planned = next(item for item in host.plan().stores if P0 in item.partitions)
    return look(path or host.directory, planned, "rocksdb")


def test_a_store_is_seen_as_it_was_flushed(host: Host) -> None:
    """Without reserved entries; its position is that of each partition."""
    with host.running() as storage:
        fill(storage, 7, 8)
        _flush(storage)
        assert is_adjunct(host.directory)
        assert _seen(host.directory) == {b"k7": b"1", b"k8": b"1"}
        found, facts = _look(host).found, _look(host).facts
    assert facts is not None
    assert (facts.records, facts.positions, found.fault) == (2, {P0: 9}, None)
    meta = replace(expected_meta(PLANES, "id"), at_head=ClockReading(host.now_ms), forms=host.forms)
    assert (found.meta, found.newest_ms) == (meta, host.now_ms)


def test_the_version_that_tasks_see_is_read(host: Host) -> None:
    """Before there is one, nothing; what is built beside it moves the position alone."""
    host.planes = replace(PLANES, is_bootstrap=True, markers=VersionMarkers(header="version"))
    with host.running() as storage:
        take(storage, 0, b"737", at_ms=1_000)
        _flush(storage)
        with pytest.raises(StoreError, match="the store has no whole version yet"):
            _seen(host.directory)
        take(storage, 1, b"A320", b"end", b"new", at_ms=1_000)
        _flush(storage)
        assert _seen(host.directory) == {b"k": b"A320"}
        facts = _look(host).facts
    assert facts is not None
    assert (facts.records, facts.version, facts.positions) == (2, 1, {P0: 4})
    assert facts.age_s(3_000) == 2.0
    for data, story in ((b"damage", "CATALOGUE is damaged: it does not"), (None, "is missing")):
        if data is None:
            (host.directory / CATALOGUE_FILE).unlink()
        else:
            (host.directory / CATALOGUE_FILE).write_bytes(data)
        fault = _look(host).found.fault
        assert fault is not None
        assert story in fault.story


def test_what_is_no_store_has_its_reason(host: Host, tmp_path: Path) -> None:
    """Nothing there, a damaged file, and a folder that no container made."""
    host.start().close()
    (host.directory / META_FILE).write_bytes(b"damage")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "CURRENT").write_bytes(b"nothing\n")
    for path, reason in (
        (host.directory, RefusalReason.DAMAGED_META),
        (tmp_path / "foreign", RefusalReason.DAMAGED_STORE),
    ):
        fault = _look(host, path).found.fault
        assert fault is not None
        assert fault.reason is reason
    (tmp_path / "empty").mkdir()
    assert _look(host, tmp_path / "empty").found == NO_STORE
    assert not is_adjunct(tmp_path / "empty")
