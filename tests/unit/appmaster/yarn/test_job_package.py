"""The job's package: what is accepted, what is shipped of it, and that this is what is checked."""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tarfile
import zipfile
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from another_user import open_folder, unprivileged
from zipped import zipped

from homeport.appmaster.yarn import job_package as module
from homeport.appmaster.yarn.job_package import PreparedPackage, package_path, prepared, zip_folder
from homeport.config.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package with a module and a nested one."""
    root = tmp_path / "code"
    for name in ("job.py", "lib/part.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("A = 1\n")
    return root


def _refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        zip_folder(folder, folder.parent / "package.zip")
    line = str(caught.value)
    assert line.startswith("yarn.package.path = ")
    assert "\n" not in line
    return line


def _refused(path: Path) -> str:
    """The line by which a package that was given is refused; nothing of it is unpacked."""
    with pytest.raises(ConfigError) as caught, _prepared(path):
        pytest.fail("it was taken")
    line = str(caught.value)
    assert "\n" not in line
    return line


def _prepared(path: Path | None) -> AbstractContextManager[PreparedPackage]:
    return prepared(path, lambda: pytest.fail("not needed"))


def test_a_linked_folder_is_refused_in_or_out_of_the_package(folder: Path, tmp_path: Path) -> None:
    """The check would import from it where it is, and no zip would have it."""
    (tmp_path / "common").mkdir()
    for target in (tmp_path / "common", folder / "lib"):
        (folder / "common").symlink_to(target)
        line = _refusal(folder)
        assert f"{folder / 'common'}" in line
        assert "put a copy in its place" in line
        (folder / "common").unlink()


@pytest.mark.parametrize("target", ["/etc/hostname", "../secret.env", "../code2/job.py"])
def test_a_link_out_of_the_package_is_refused(folder: Path, tmp_path: Path, target: str) -> None:
    """What it names would go to all readers of the coordinator stream; nothing of it is shipped."""
    (tmp_path / "code2").mkdir()
    for name in ("secret.env", "code2/job.py"):
        (tmp_path / name).write_text("hunter2")
    (folder / "leak.txt").symlink_to(target)
    assert "it is a link out of the package" in _refusal(folder)
    # A link to a link out of it, too.
    (folder / "again.txt").symlink_to(folder / "leak.txt")
    assert "a link out of the package" in _refusal(folder)


def test_a_link_within_the_package_is_shipped_as_what_it_names(
    folder: Path, tmp_path: Path
) -> None:
    """A file of its own, with the content; the package may be named by a link itself."""
    (folder / "alias.py").symlink_to("lib/part.py")
    (tmp_path / "current").symlink_to(folder)
    for place in (folder, tmp_path / "current"):
        with zipfile.ZipFile(zip_folder(place, tmp_path / "package.zip")) as archive:
            assert archive.namelist() == ["alias.py", "job.py", "lib/part.py"]
            assert archive.read("alias.py") == b"A = 1\n"
            kinds = {stat.S_IFMT(entry.external_attr >> 16) for entry in archive.infolist()}
            assert kinds == {0}


@pytest.mark.parametrize("target", ["nowhere", "loop", "loop/x"])
def test_a_link_to_nowhere_is_refused(folder: Path, target: str) -> None:
    """A loop leads nowhere, too."""
    (folder / "loop").symlink_to(target)
    assert "it is a link to nowhere" in _refusal(folder)


def test_what_is_no_file_is_refused(folder: Path) -> None:
    """A pipe, which a reader would wait for, and a socket."""
    os.mkfifo(folder / "pipe")
    assert "it is no file, folder or link" in _refusal(folder)
    (folder / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(folder)  # a socket's path may have some hundred bytes
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        assert "it is no file, folder or link" in _refusal(folder)


@pytest.mark.parametrize("name", [b"caf\xe9.py", b"a\nb.py", b"a\\b.py", b"\x1b[2Jx.py"])
def test_a_name_that_a_zip_cannot_keep_is_refused(folder: Path, name: bytes) -> None:
    """The line can be printed."""
    (folder / os.fsdecode(name)).write_text("A = 1")
    line = _refusal(folder)
    assert "its name must be UTF-8" in line
    assert line.isprintable()


def test_names_of_other_scripts_are_kept(folder: Path, tmp_path: Path) -> None:
    """As UTF-8, with the spaces that are no plain ones."""
    (folder / "Größe\u00a0中.txt").write_text("x")
    with zipfile.ZipFile(zip_folder(folder, tmp_path / "package.zip")) as archive:
        assert "Größe\u00a0中.txt" in archive.namelist()


def test_a_folder_that_cannot_be_read_is_not_left_out() -> None:
    """One line says why; a package without it would fail on the hosts."""
    with open_folder() as base:
        (base / "lib").mkdir()
        (base / "lib").chmod(0)
        (base / "job.py").write_text("")
        with unprivileged():
            line = _refused(base)
    assert re.search("it cannot be read .*Permission denied", line)


@pytest.mark.parametrize("change", ["content", "new", "gone", "mode"])
def test_a_folder_that_changes_meanwhile_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """An editor or a build that still writes: no zip is half of one state, half of another."""
    copy = shutil.copyfileobj
    done: list[bool] = []

    def changed(source: io.BufferedReader, sink: io.BufferedWriter) -> None:
        copy(source, sink)
        if done:
            return
        done.append(True)
        match change:
            case "content":
                (folder / "job.py").write_text("A = 22\n")
            case "new":
                (folder / "new.py").write_text("")
            case "gone":
                (folder / "job.py").unlink()
            case _:
                (folder / "job.py").chmod(0o700)

    monkeypatch.setattr(shutil, "copyfileobj", changed)
    line = _refusal(folder)
    assert "has changed while it was packed" in line
    assert f"{folder / ('new.py' if change == 'new' else 'job.py')}" in line


def test_a_file_that_is_exchanged_and_put_back_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder looks the same before and after: what was read is what counts."""
    copy, part, aside = shutil.copyfileobj, folder / "lib" / "part.py", tmp_path / "aside"

    def exchanging(source: io.BufferedReader, sink: io.BufferedWriter) -> None:
        copy(source, sink)
        if aside.exists():
            aside.replace(part)
        else:
            part.rename(aside)
            part.write_text("A = 1\n")

    monkeypatch.setattr(shutil, "copyfileobj", exchanging)
    assert "lib/part.py" in _refusal(folder)


def test_a_folder_of_absurd_size_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is a mistake, as of the home folder: before anything is read."""
    with (folder / "large").open("wb") as file:
        file.truncate(module.MOST_BYTES)
    assert f"more than {module.MOST_BYTES} bytes" in _refusal(folder)
    (folder / "large").unlink()
    monkeypatch.setattr(module, "MOST_FILES", 1)
    assert "it has more than 1 files" in _refusal(folder)


def test_names_that_differ_in_case_alone_are_refused(folder: Path) -> None:
    """Which of them a host without case has, no check can know."""
    (folder / "LIB").mkdir()
    (folder / "LIB" / "other.py").write_text("")
    assert "names that differ in case alone: 'LIB' and 'lib'" in _refusal(folder)


def test_equal_folders_are_equal_bytes(folder: Path, tmp_path: Path) -> None:
    """Whenever and in whatever order they were made; they are those of an earlier release."""
    other = tmp_path / "other"
    for name in ("lib/part.py", "job.py"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("A = 1\n")
        os.utime(other / name, (1, 1))
    one, two = (zip_folder(f, tmp_path / f"{f.name}.zip") for f in (folder, other))
    assert one.read_bytes() == two.read_bytes()
    before = io.BytesIO()
    with zipfile.ZipFile(before, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("job.py", "lib/part.py"):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = ((folder / name).stat().st_mode & 0o777) << 16
            archive.writestr(entry, (folder / name).read_bytes())
    assert one.read_bytes() == before.getvalue()


def test_an_import_that_only_the_folder_has_is_not_found_in_the_package(tmp_path: Path) -> None:
    """The check sees what hosts get: what is left out of the zip is missing there, too."""
    (tmp_path / "code" / ".venv").mkdir(parents=True)
    (tmp_path / "code" / ".venv" / "hidden.py").write_text("")
    (tmp_path / "code" / "job.py").write_text("import pathlib\n")
    with _prepared(tmp_path / "code") as package:
        assert not (package.import_path / ".venv").exists()
        found = subprocess.run(
            [sys.executable, "-c", "import job; print(job.__file__)"],
            env={"PYTHONPATH": str(package.import_path)},
            capture_output=True,
            text=True,
            check=True,
        )
    assert found.stdout.strip() == f"{package.import_path}/job.py"


def _entry(name: str, kind: int = 0, method: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (kind | 0o644) << 16
    entry.compress_type = method
    return entry


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ([_entry("link", stat.S_IFLNK)], "the package has a link: 'link'"),
        ([_entry("pipe", stat.S_IFIFO)], "the package has a special file: 'pipe'"),
        ([_entry("a"), _entry("a/b")], "a file and a folder of one name"),
        ([_entry("a.py"), _entry("A.py")], "names that differ in case alone: 'A.py' and 'a.py'"),
        ([_entry("a/x"), _entry("A/y")], "names that differ in case alone: 'A' and 'a'"),
        ([_entry("/a.py")], "an entry outside it: '/a.py'"),
        ([_entry("../a.py")], "an entry outside it: '../a.py'"),
        ([_entry("a.py"), _entry("a.py")], "an entry twice: 'a.py'"),
        ([_entry("a.py"), _entry("./a.py")], "an entry twice: './a.py'"),
        ([_entry("a", method=zipfile.ZIP_LZMA)], "neither stored nor deflated: 'a'"),
        ([_entry("a", method=zipfile.ZIP_BZIP2)], "neither stored nor deflated: 'a'"),
    ],
)
def test_a_zip_that_hosts_unpack_otherwise_is_refused(
    tmp_path: Path, entries: list[zipfile.ZipInfo], rule: str
) -> None:
    """One line names archive, entry and remedy; nothing is unpacked."""
    path = tmp_path / "job.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for entry in entries:
            archive.writestr(entry, "x")
    line = _refused(path)
    assert line.startswith(f"yarn.package.path = '{path}': the package has ")
    assert rule in line
    assert line.endswith("pack files and folders alone, each once, without links")


def test_a_zip_of_absurd_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what its entries declare, before one is unpacked."""
    path = tmp_path / "job.zip"
    path.write_bytes(zipped({"a": "x" * 100, "b": ""}))
    monkeypatch.setattr(module, "MOST_BYTES", 99)
    assert "files of 100 bytes, more than 99" in _refused(path)
    monkeypatch.setattr(module, "MOST_FILES", 1)
    assert "has 2 entries, more than 1" in _refused(path)


@pytest.mark.parametrize("size", [10, 60, 100])
def test_a_damaged_zip_is_refused_in_one_line(tmp_path: Path, size: int) -> None:
    """Cut short, or with other bytes in the midst of what is packed."""
    whole = zipped({"tasks.py": "".join(map(str, range(200)))})
    for data in (whole[:size], whole[:size] + b"\xff" * 30 + whole[size + 30 :]):
        path = tmp_path / "job.zip"
        path.write_bytes(data)
        assert "it cannot be read" in _refused(path)


def test_folders_of_a_zip_may_come_twice(tmp_path: Path) -> None:
    """As some tools write them, and beside their files."""
    path = tmp_path / "job.zip"
    path.write_bytes(zipped({"lib/": "", "lib/a.py": "1", "b.py": ""}))
    with _prepared(path) as package:
        assert (package.import_path / "lib" / "a.py").read_text() == "1"


def test_a_tarball_of_absurd_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before one of its files is unpacked; one with links out of it is, too."""
    path = tmp_path / "job.tar.gz"
    (tmp_path / "a.py").write_text("x" * 100)
    (tmp_path / "b.py").symlink_to("/etc/hostname")
    for name in ("a.py", "b.py"):
        with tarfile.open(path, "w:gz") as archive:
            archive.add(tmp_path / name, name)
        monkeypatch.setattr(module, "MOST_BYTES", 99)
        assert re.search("more than 50000 entries|it cannot be read", _refused(path))


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (None, "it is required"),
        ("/no/such/folder", "does not exist"),
        ("hdfs://nn/job", "must be a .zip"),
        (sys.executable, "must be a folder"),
    ],
)
def test_a_wrong_package_path_is_refused(value: str | None, rule: str) -> None:
    """A missing key, a missing path, a folder elsewhere and another file: each names its rule."""
    with pytest.raises(ConfigError, match=rule) as caught:
        package_path(value)
    assert str(caught.value).startswith("yarn.package.path")


def test_a_path_may_be_a_file_url(folder: Path) -> None:
    """A path and its file: URL are the same package."""
    assert package_path(str(folder)) == package_path(folder.as_uri()) == folder


def test_a_job_without_code_has_a_package_all_the_same() -> None:
    """YARN localises it as any other; nothing in it can be imported."""
    path = package_path(None, may_be_none=True)
    assert path is None
    with _prepared(path) as package, zipfile.ZipFile(package.archive) as archive:
        assert archive.namelist() == ["README"]
        assert [file.name for file in package.import_path.iterdir()] == ["README"]


def test_a_folder_is_imported_from_what_is_shipped(folder: Path) -> None:
    """As the hosts unpack it: no byte code, no tool's folder. Archive and copy are temporary."""
    for name in ("__pycache__/job.pyc", ".git/config"):
        (folder / name).parent.mkdir()
        (folder / name).touch()
    with _prepared(folder) as package:
        assert Path(package.archive).exists()
        assert package.import_path.name == folder.name
        with zipfile.ZipFile(package.archive) as archive:
            assert archive.namelist() == ["job.py", "lib/part.py"]
        files = [path for path in package.import_path.rglob("*") if path.is_file()]
        assert {str(f.relative_to(package.import_path)) for f in files} == {"job.py", "lib/part.py"}
    assert not Path(package.archive).exists()
    assert not package.import_path.exists()


def test_a_zip_is_shipped_as_it_is(folder: Path, tmp_path: Path) -> None:
    """A host unpacks it, so what the code reads beside itself is there for the check, too."""
    archive = zip_folder(folder, tmp_path / "job.zip")
    with _prepared(archive) as package:
        assert package.archive == package.zip_path == archive
        assert (package.import_path / "lib" / "part.py").read_text() == "A = 1\n"
    assert not package.import_path.exists()


def test_a_tarball_is_unpacked_for_the_check_only(folder: Path, tmp_path: Path) -> None:
    """The archive is shipped as it is; its unpacked copy is gone afterwards."""
    path = tmp_path / "job.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "job.py", "job.py")
    with _prepared(path) as package:
        assert package.archive == path
        assert (package.import_path / "job.py").read_text() == "A = 1\n"
    assert not package.import_path.exists()


@pytest.mark.parametrize("name", ["job.zip", "job.tar.gz", "job.tgz"])
def test_a_damaged_archive_is_refused(tmp_path: Path, name: str) -> None:
    """What cannot be read is found here, not on the cluster."""
    path = tmp_path / name
    path.write_bytes(b"damaged")
    assert package_path(str(path)) == path
    assert "cannot be read" in _refused(path)
