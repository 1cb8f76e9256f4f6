"""When a launcher has its host cleaned: real processes, memory and clock by the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import until

from homeport.container.launcher import host_cleaning as module
from homeport.container.launcher.host_cleaning import HostCleaning

DAY_MS, HOUR_MS, MINUTE_MS = 86_400_000, 3_600_000, 60_000
MEMORY_MB, NO_ROOM_MB = 1024, 1000


class _Kept:
    """A cleaning as a launcher keeps it. Units: ms."""

    def __init__(self, folder: Path) -> None:
        self.now_ms, self.used_mb = 1_000_000, 0
        self.written, self.folder = folder / "written", folder
        self.cleaning: HostCleaning | None = None

    def make(self, script: str, after_ms: int = HOUR_MS, memory_mb: int = MEMORY_MB) -> None:
        command = ("/bin/sh", "-c", script, "sh")
        token = self.folder / "token"
        self.cleaning = HostCleaning(after_ms, memory_mb, token, command)

    def look(self, after_ms: int = 0) -> int:
        """The launcher looks after it; return how many processes have written a line by then."""
        assert self.cleaning is not None
        self.now_ms += after_ms
        self.cleaning.look_after()
        return len(self.words())

    def words(self) -> list[str]:
        return self.written.read_text().splitlines() if self.written.exists() else []

    def until_over(self) -> None:
        """The process has ended, and the launcher has seen that."""
        cleaning = self.cleaning
        assert cleaning is not None

        def is_over() -> bool:
            cleaning.look_after()
            return cleaning._process is None

        until(is_over, lambda: "it runs still", 10)


@pytest.fixture(name="kept")
def _kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Kept]:
    made = _Kept(tmp_path)
    monkeypatch.setattr(module, "boot_ms", lambda: made.now_ms)
    monkeypatch.setattr(module, "used_mb", lambda: made.used_mb)
    yield made
    if made.cleaning is not None:
        made.cleaning.end("the test ends")


def saying(kept: _Kept, then: str = "exit 0") -> str:
    """A script that writes its age, token file and rights once; its input has an end."""
    return f'cat; echo "$1 $HOMEPORT_TOKEN_FILE $(umask)" >> {kept.written}; {then}'


def test_a_host_is_cleaned_at_the_start_and_once_a_day(
    kept: _Kept, caplog: pytest.LogCaptureFixture
) -> None:
    """With the age that the key has, and the launcher's own token file; nothing more is logged."""
    kept.make(saying(kept))
    kept.look()
    kept.until_over()
    assert kept.words() == [f"{HOUR_MS} {kept.folder / 'token'} 0077"]
    assert kept.look(DAY_MS - 1) == 1
    kept.look(1)
    kept.until_over()
    assert len(kept.words()) == 2
    assert caplog.messages == []


@pytest.mark.parametrize(("after_ms", "memory_mb"), [(0, MEMORY_MB), (HOUR_MS, 0)])
def test_without_the_key_or_a_known_memory_nothing_is_started(
    kept: _Kept, after_ms: int, memory_mb: int
) -> None:
    """An AM of an earlier release gives neither."""
    kept.make(saying(kept), after_ms, memory_mb)
    kept.look()
    kept.until_over()
    assert kept.look(2 * DAY_MS) == 0


def test_it_waits_for_room_and_looks_again_after_a_minute(kept: _Kept) -> None:
    """What the container needs comes first."""
    kept.make(saying(kept))
    kept.used_mb = NO_ROOM_MB
    kept.look()
    kept.used_mb = 0
    kept.look(MINUTE_MS - 1)
    assert kept.cleaning is not None
    assert kept.cleaning._process is None
    kept.look(1)
    kept.until_over()
    assert len(kept.words()) == 1


@pytest.mark.parametrize(
    ("end", "again_ms"),
    [
        (lambda kept: setattr(kept, "used_mb", NO_ROOM_MB), MINUTE_MS),
        (lambda kept: setattr(kept, "now_ms", kept.now_ms + HOUR_MS), DAY_MS - HOUR_MS),
    ],
)
def test_it_is_ended_where_its_memory_is_needed_or_it_takes_too_long(
    kept: _Kept, end: Callable[[_Kept], None], again_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    """With a reason in the launcher's log; another one comes when it is due."""
    kept.make(saying(kept, "exec sleep 600"))
    kept.look()
    until(lambda: len(kept.words()) == 1, lambda: "nothing is written", 10)
    kept.look()
    assert kept.cleaning is not None
    process = kept.cleaning._process
    assert process is not None
    assert process.poll() is None
    end(kept)
    kept.look()
    assert process.poll() is not None
    kept.used_mb = 0
    kept.look(again_ms - 1)
    (line,) = caplog.messages
    assert line.startswith("the cleaning of this host ends early: ")
    assert kept.cleaning._process is None
    kept.look(1)
    assert kept.cleaning._process is not None


def test_a_failure_is_a_warning(kept: _Kept, caplog: pytest.LogCaptureFixture) -> None:
    """Of the process, and of its start."""
    kept.make("exit 7")
    kept.look()
    kept.until_over()
    assert "the cleaning of this host has failed, exit code 7" in caplog.text
    kept.cleaning = HostCleaning(HOUR_MS, MEMORY_MB, kept.folder, (os.fspath(kept.folder),))
    kept.look()
    assert "the cleaning of this host cannot be started" in caplog.text
