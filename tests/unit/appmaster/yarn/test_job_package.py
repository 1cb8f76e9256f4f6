"""The job's package: what is accepted, and what is shipped of a folder."""

from __future__ import annotations

import contextlib
import tarfile
import zipfile
from pathlib import Path

import pytest

from homeport.appmaster.yarn.hadoop_files import HadoopFiles
from homeport.appmaster.yarn.job_package import package_path, prepared
from homeport.appmaster.yarn.package_zip import zip_folder
from homeport.config.errors import ConfigError


def no_files() -> contextlib.AbstractContextManager[HadoopFiles]:
    """No package here is in the cluster's file system."""
    raise AssertionError("the cluster's file system is not needed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package with a module, a nested one, byte code and a tool's folder."""
    root = tmp_path / "code"
    for name in ("job.py", "lib/part.py", "__pycache__/job.pyc", ".git/config"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (None, "it is required"),
        ("/no/such/folder", "does not exist"),
        ("hdfs://nn/job", "must be a .zip"),
        (__file__, "must be a folder"),
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
    with prepared(path, no_files) as package, zipfile.ZipFile(package.archive) as archive:
        assert archive.namelist() == ["README"]
        assert [file.name for file in package.import_path.iterdir()] == ["README"]


def test_a_folder_is_packed_without_byte_code(folder: Path, tmp_path: Path) -> None:
    """The archive holds the sources at its root, and equal folders make equal archives."""
    one = zip_folder(folder, tmp_path / "1.zip")
    two = zip_folder(folder, tmp_path / "2.zip")
    with zipfile.ZipFile(one) as archive:
        assert archive.namelist() == ["job.py", "lib/part.py"]
    assert one.read_bytes() == two.read_bytes()


def test_a_folder_is_imported_from_what_is_shipped(folder: Path) -> None:
    """As the hosts unpack it: what the archive has, and no more. Both are temporary."""
    with prepared(folder, no_files) as package:
        assert Path(package.archive).exists()
        assert package.import_path.name == folder.name
        files = [path for path in package.import_path.rglob("*") if path.is_file()]
        assert sorted(str(path.relative_to(package.import_path)) for path in files) == [
            "job.py",
            "lib/part.py",
        ]
    assert not Path(package.archive).exists()
    assert not package.import_path.exists()


def test_a_zip_is_shipped_as_it_is(folder: Path, tmp_path: Path) -> None:
    """A host unpacks it, so what the code reads beside itself is there for the check, too."""
    archive = zip_folder(folder, tmp_path / "job.zip")
    with prepared(archive, no_files) as package:
        assert package.archive == package.zip_path == archive
        assert (package.import_path / "lib" / "part.py").read_text() == "lib/part.py"
    assert not package.import_path.exists()


def test_a_tarball_is_unpacked_for_the_check_only(folder: Path, tmp_path: Path) -> None:
    """The archive is shipped as it is; its unpacked copy is gone afterwards."""
    path = tmp_path / "job.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "job.py", "job.py")
    with prepared(path, no_files) as package:
        assert package.archive == path
        assert (package.import_path / "job.py").read_text() == "job.py"
    assert not package.import_path.exists()


@pytest.mark.parametrize("name", ["job.zip", "job.tar.gz", "job.tgz"])
def test_a_damaged_archive_is_refused(tmp_path: Path, name: str) -> None:
    """What cannot be read is found here, not on the cluster."""
    path = tmp_path / name
    path.write_bytes(b"damaged")
    with (
        pytest.raises(ConfigError, match="cannot be read"),
        prepared(package_path(str(path)), no_files),
    ):
        pass
