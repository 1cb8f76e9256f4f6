"""Packages that a launcher fetches: whole folders, or none. AM: the test; disk: a real one."""

from __future__ import annotations

import errno
import io
import logging
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from zipped import sha256_of, zipped

from homeport.config.errors import HomeportError, UnavailableError, WireError
from homeport.container.launcher import packages as module
from homeport.container.launcher.packages import JobPackages

DATA = zipped({"tasks.py": "VERSION = 2", "lib/a.py": "", "lib/run.sh": "#!/bin/sh"}, 0o755)
NAME = sha256_of(DATA)
FOLDER = f"__package-{NAME}"
LIMIT_S = 10.0


class _Place:
    """A launcher's folder, and an AM that gives what ``answers`` has, one for each fetch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers: list[bytes | HomeportError] = []
        self.asked: list[str] = []
        self.now_ms = 1_000_000
        self.fetched = 0
        self.made_ready: list[str | None] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.packages = JobPackages(folder, self._fetch, self._on_fetched, self.made_ready.append)

    def _fetch(self, name: str) -> bytes:
        self.asked.append(name)
        assert self.may_answer.wait(LIMIT_S)
        answer = self.answers.pop(0)
        if isinstance(answer, HomeportError):
            raise answer
        return answer

    def _on_fetched(self) -> None:
        self.fetched += 1

    def want(self, name: str = NAME, after_ms: int = 0) -> Path | None:
        """What there is, once what it has begun is over."""
        self.now_ms += after_ms
        self.packages.want(name)
        self.over()
        return self.packages.find(name)

    def over(self) -> None:
        if self.packages._thread is not None:
            self.packages._thread.join(LIMIT_S)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture(name="place")
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Place]:
    made = _Place(tmp_path)
    monkeypatch.setattr(module, "boot_ms", lambda: made.now_ms)
    yield made
    made.may_answer.set()
    made.over()


def test_the_submissions_package_is_where_yarn_has_put_it(place: _Place) -> None:
    """It is never fetched."""
    assert place.packages.find(None) == place.packages.want(None) == place.folder / "__package"
    assert place.asked == []


def test_a_package_is_fetched_once_and_unpacked(place: _Place) -> None:
    """With its folders and permissions; the launcher hears of it."""
    assert place.packages.find(NAME) is None
    place.answers = [DATA]
    assert place.want() == place.folder / FOLDER
    assert (place.names(), place.asked, place.fetched) == ([FOLDER], [NAME], 1)
    assert (place.folder / FOLDER / "tasks.py").read_text() == "VERSION = 2"
    assert (place.folder / FOLDER / "lib" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert place.want() == place.folder / FOLDER
    assert place.asked == [NAME]
    other = NAME[:63] + ("0" if NAME[63] != "0" else "1")
    assert place.packages.find(other) is None, "a sha256 is a name as a whole"


def test_a_zip_without_permissions_has_readable_files(place: _Place) -> None:
    """As tools of other systems make it."""
    data = zipped({"lib/": "", "tasks.py": "1"}, 0)
    place.answers = [data]
    folder = place.want(sha256_of(data))
    assert folder is not None
    assert (folder / "tasks.py").read_text() == "1"


def test_nothing_waits_for_a_fetch_and_it_is_not_begun_twice(place: _Place) -> None:
    """Nor is anything cleaned away meanwhile."""
    place.may_answer.clear()
    place.answers = [DATA]
    (place.folder / "__package-old").mkdir()
    assert place.packages.want(NAME) is None
    assert place.packages.want(NAME) is None
    assert place.packages.want("ab" * 32) is None
    place.packages.keep_only(())
    assert place.names() == ["__package-old"]
    place.may_answer.set()
    place.over()
    assert (place.asked, place.packages.find(NAME)) == ([NAME], place.folder / FOLDER)


BAD = zipped({"tasks.py": "1", "../outside.py": "2"})
NO_ZIP = b"no zip"
DAMAGED = zipped({"tasks.py": "1" * 99}).replace(b"tasks.py", b"takss.py", 1)


@pytest.mark.parametrize(
    ("name", "answer", "why"),
    [
        (NAME, UnavailableError("the AM does not answer"), "the AM does not answer"),
        (NAME, WireError("404 there is no package"), "404 there is no package"),
        (NAME, zipped({"tasks.py": "1"}), "bytes of another sha256"),
        (sha256_of(BAD), BAD, "the package has an entry outside it: '../outside.py'"),
        (sha256_of(NO_ZIP), NO_ZIP, "the package is no zip"),
        (sha256_of(DAMAGED), DAMAGED, "in directory 'tasks.py' and header b'takss.py' differ"),
    ],
)
def test_what_cannot_be_used_leaves_nothing(
    place: _Place,
    caplog: pytest.LogCaptureFixture,
    name: str,
    answer: bytes | HomeportError,
    why: str,
) -> None:
    """One line says why, and it is not said again while that stays so."""
    place.answers = [answer, answer]
    with caplog.at_level(logging.WARNING):
        assert place.want(name) is None
        assert place.want(name, module._REST_MS) is None
    assert (place.asked, place.names(), place.fetched) == ([name, name], [], 0)
    assert not (place.folder.parent / "outside.py").exists()
    (line,) = caplog.messages
    assert line.startswith(f"package {name[:16]} is not here, trying again: ")
    assert why in line
    assert "\n" not in line


def test_it_is_tried_again_after_longer_and_longer_rests(place: _Place) -> None:
    """Up to a longest one; what then succeeds ends that."""
    gone = UnavailableError("away")
    place.answers.extend([gone] * 20)
    rests = [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]
    place.want()
    for number, rest_ms in enumerate(rests, 1):
        place.want(after_ms=rest_ms - 1)
        assert len(place.asked) == number
        place.want(after_ms=1)
        assert len(place.asked) == number + 1
    place.answers[:] = [DATA, gone, gone]
    assert place.want(after_ms=10_000) is not None
    place.want("ab" * 32)
    place.want("ab" * 32, after_ms=250)
    assert place.asked[-2:] == ["ab" * 32] * 2


def test_the_log_names_each_new_reason(place: _Place, caplog: pytest.LogCaptureFixture) -> None:
    """And one that comes again after a success."""
    gone, other = UnavailableError("away"), "cd" * 32
    place.answers = [gone, WireError("404"), DATA, gone]
    with caplog.at_level(logging.WARNING):
        for name in (NAME, NAME, NAME, other):
            place.want(name, after_ms=60_000)
    assert [line.rpartition(": ")[2] for line in caplog.messages] == ["away", "404", "away"]


def test_a_full_disk_leaves_nothing(
    place: _Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither half a package nor its beginning; when there is room again, it is there."""
    extract, count = zipfile.ZipFile.extract, list[object]()

    def full(archive: zipfile.ZipFile, *arguments: Any) -> str:  # noqa: ANN401 - as the real one's
        count.append(arguments)
        if len(count) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return extract(archive, *arguments)

    monkeypatch.setattr(zipfile.ZipFile, "extract", full)
    place.answers = [DATA, DATA]
    with caplog.at_level(logging.WARNING):
        assert place.want() is None
    assert "No space left on device" in caplog.text
    assert place.names() == []
    assert place.want(after_ms=60_000) == place.folder / FOLDER


def test_a_folder_that_cannot_be_written_is_said(
    place: _Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A file is where the package is to be unpacked."""
    (place.folder / f"{FOLDER}.unfinished").write_text("")
    place.answers = [DATA]
    with caplog.at_level(logging.WARNING):
        assert place.want() is None
    assert "File exists" in caplog.text


def test_what_a_dead_launcher_has_begun_is_not_used(place: _Place) -> None:
    """It is begun again, without what was there."""
    unfinished = place.folder / f"{FOLDER}.unfinished"
    unfinished.mkdir()
    (unfinished / "half.py").write_text("")
    assert place.packages.find(NAME) is None
    place.answers = [DATA]
    assert place.want() == place.folder / FOLDER
    assert place.names() == [FOLDER]
    assert not (place.folder / FOLDER / "half.py").exists()


def test_packages_that_are_not_wanted_any_more_go(place: _Place) -> None:
    """YARN's stays, and so does what is not of a package."""
    place.answers = [DATA]
    wanted = place.want()
    assert wanted is not None
    for name in ("__package", "__package-old", "__package-new.unfinished", "logs"):
        (place.folder / name).mkdir()
    place.packages.keep_only({wanted})
    assert place.names() == ["__package", FOLDER, "logs"]


def test_a_launcher_outlives_its_folder(tmp_path: Path) -> None:
    """YARN may remove it early: then nothing is fetched into it any more."""
    place = _Place(tmp_path / "gone")
    place.answers = [DATA]
    assert place.want() is None
    place.packages.keep_only(())


def test_whatever_cannot_be_unpacked_has_its_rest(
    place: _Place, caplog: pytest.LogCaptureFixture
) -> None:
    """Each way to compress has errors of its own, as LZMA."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("big", bytes(range(256)) * 12)
    data = bytearray(made.getvalue())
    data[60:90] = b"\xff" * 30
    name = sha256_of(bytes(data))
    place.answers = [bytes(data)] * 9
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            place.want(name)
    assert place.asked == [name]
    (line,) = caplog.messages
    assert line == f"package {name[:16]} is not here, trying again: Corrupt input data"


def test_it_is_hopeless_after_some_tries_in_a_row(place: _Place) -> None:
    """Then it begins again; what another package cannot is no reason.

    An AM that does not answer makes it not hopeless: it is the same at every host.
    """
    fault, other = WireError("404 there is no package"), "cd" * 32
    place.answers = [fault] * 99
    assert place.packages.fault(None) is None
    place.want(other, after_ms=60_000)
    for _ in range(module._TRIES):
        assert place.packages.give_up(NAME) is None
        place.want(after_ms=60_000)
    assert place.packages.fault(other) is None
    assert place.packages.fault(NAME) == "404 there is no package"
    assert place.packages.give_up(NAME) == "404 there is no package"
    assert place.packages.give_up(NAME) is None
    place.answers[:] = [DATA]
    assert place.want(after_ms=60_000) is not None
    assert (place.packages.fault(NAME), place.packages.give_up(NAME)) == (None, None)
    place.answers[:] = [UnavailableError("away")] * 99
    for _ in range(3 * module._TRIES):
        place.want(other, after_ms=60_000)
    assert (place.packages.fault(other), place.packages.give_up(other)) == ("away", None)


def test_a_fault_of_our_own_is_no_silent_one(
    place: _Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is not expected leaves nothing behind either, and rests."""

    def broken(*_: object) -> str:
        raise AssertionError

    monkeypatch.setattr(zipfile.ZipFile, "extract", broken)
    place.answers = [DATA]
    with caplog.at_level(logging.WARNING):
        assert place.want() is None
        assert place.want() is None
    assert caplog.messages[0].endswith("is not here, trying again: AssertionError")
    assert place.names() == []
