"""What the set-up promises about versions, and what CI reads out of pytest's output."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import ci_main
from homeport.local_cluster.net import network
from local_setup import environment, prerequisites
from local_setup.progress import Progress

ROOT = Path(__file__).resolve().parents[3]


def _pinned() -> dict[str, str]:
    pairs = (pin.split("==") for pin in environment.pins())
    return {name.lower().replace("_", "-"): version for name, version in pairs}


def _required() -> list[Requirement]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lists = [config["options"]["install_requires"], *config["options.extras_require"].values()]
    return [Requirement(line) for text in lists for line in text.splitlines() if line]


@pytest.mark.parametrize("requirement", _required(), ids=lambda r: r.name)
def test_every_requirement_is_pinned_within_its_range(requirement: Requirement) -> None:
    """Each package of setup.cfg has one exact version, and its range allows that version."""
    version = _pinned()[requirement.name.lower().replace("_", "-")]
    assert requirement.specifier.contains(version)


def test_build_tools_are_pinned_first() -> None:
    """pip, setuptools and wheel are pinned too: they build what has no wheel."""
    assert [pin.split("==")[0] for pin in environment.pins()[:3]] == ["pip", "setuptools", "wheel"]


def test_the_installed_package_is_hashed_without_compiled_files() -> None:
    """What decides about a new installation is sources only, all five folders of them."""
    files = {file.relative_to(ROOT) for file in environment._package_files()}
    assert not [file for file in files if file.suffix == ".pyc"]
    assert {f.parts[0] for f in files if len(f.parts) > 1} == {
        *environment.PACKAGES,
        *(folder.partition("/")[0] for folder in environment.SHIPPED),
    }


@pytest.mark.parametrize(
    ("release", "major"),
    [('JAVA_VERSION="17.0.15"\n', 17), ('IMPLEMENTOR="x"\nJAVA_VERSION="21"\n', 21), ("", 0)],
)
def test_java_version_is_read_from_the_release_file(
    tmp_path: Path, release: str, major: int
) -> None:
    """The major version stands in JAVA_VERSION; a home without it counts as no Java."""
    (tmp_path / "release").write_text(release, encoding="utf-8")
    assert prerequisites._major(tmp_path) == major


def test_set_up_brings_the_programs_that_networks_need() -> None:
    """The set-up, which cannot import homeport, installs what the cluster's networks use."""
    assert prerequisites._NETWORK == network.TOOLS


def test_set_up_goes_on_without_the_programs_of_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The set-up requests them from apt; where it has none, one line says what will be left out."""
    apt = tmp_path / "apt-get"
    apt.write_text('#!/bin/sh\n[ "$1" = update ]\n', encoding="utf-8")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(prerequisites, "_SYSTEM_FOLDERS", str(tmp_path))
    monkeypatch.setattr(prerequisites, "_MANUAL_PAGES", tmp_path / "man1")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    prerequisites.want(["network"], Progress(), tmp_path / "log")
    printed = capsys.readouterr().err
    assert "Tests of a network that breaks are left out: system packages (iproute2 ipt" in printed
    tried = "$ apt-get install -q -y --no-install-recommends iproute2 iptables util-linux\n"
    assert tried in (tmp_path / "log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "is_closing"),
    [
        ("===== 1 failed, 14 passed, 203 deselected in 1.02s =====", True),
        ("========== 218 passed in 72.10s (0:01:12) ==========", True),
        ("============ no tests ran in 0.01s ============", True),
        ("3 passed in 0.10s", True),
        ("=== short test summary info ===", False),
        ("FAILED tests/unit/test_x.py::test_y - took 3 passed", False),
    ],
)
def test_closing_line_is_recognised(line: str, *, is_closing: bool) -> None:
    """CI distinguishes pytest's last line from every other line of its output."""
    assert bool(ci_main._CLOSING.match(line)) is is_closing


@pytest.mark.parametrize(
    ("code", "closing", "left", "words"),
    [
        (0, "== 3 passed in 1.20s ==", [], []),
        (1, "== 1 failed, 3 passed in 1.20s ==", [], []),
        (0, "== 3 passed, 2 skipped in 1.20s ==", [], ["skipped"]),
        (5, "== 3 deselected in 1.20s ==", ["7 java"], ["process 7 java", "no test"]),
    ],
)
def test_ci_complains_of_what_pytest_lets_pass(
    code: int, closing: str, left: list[str], words: list[str]
) -> None:
    """Nothing selected, something skipped or something left running is no green run."""
    found = ci_main._complaints(code, closing, left)
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True))
