"""What failed runs once more: which tests are flaky, and when a run is red all the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import once_more
import pytest
from once_more import Row, judge, rows

_SUPPORT = Path(once_more.__file__).parent
_CONFTEST = f"""
import sys
sys.path.insert(0, {str(_SUPPORT)!r})
from pathlib import Path
import once_more
import pytest

once_more._TABLE = Path(__file__).parent / "FLAKY.md"

def pytest_addoption(parser):
    parser.addoption("--faults", type=int, default=2)
    parser.addoption("--hosts", type=int, default=3)
    parser.addoption("--once-more", action="store_true")

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if session.config.getoption("once_more") and not hasattr(session.config, "workerinput"):
        once_more.at_the_end(session)

def pytest_terminal_summary(terminalreporter):
    once_more.summarise(terminalreporter)
"""
_TESTS = """
from pathlib import Path
import pytest

def first_time(name):
    mark = Path(__file__).with_name(name)
    if mark.exists():
        return False
    mark.touch()
    return True

@pytest.fixture
def shaky():
    assert not first_time("fixture"), "the fixture was not ready"

def test_sound(): pass

def test_flaky(): assert not first_time("call"), "a moment too early"

def test_on_a_shaky_fixture(shaky): pass

@pytest.mark.parametrize("case", [1, 2])
def test_case(case): assert case == 1 or not first_time("case"), "the case"
"""
_HEAD = "| date | test | cause found | mended by |\n| --- | --- | --- | --- |\n"


def _run(folder: Path, more: str, table: str, *options: str) -> tuple[int, str]:
    """Exit code and output of a run of the tests above, and of ``more``."""
    (folder / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    (folder / "FLAKY.md").write_text(table, encoding="utf-8")
    (folder / "test_it.py").write_text(_TESTS + more, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    words = ["-q", "--once-more", "-p", "no:cacheprovider", "--color=no", *options]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.search
def test_three_flaky_tests_are_a_green_run(tmp_path: Path) -> None:
    """Each is printed with its first failure and counted; the closing line is the last."""
    code, printed = _run(tmp_path, "", _HEAD, "-n", "2")
    assert code == 0, printed
    for name, text in (
        ("test_flaky", "a moment too early"),
        ("test_on_a_shaky_fixture", "the fixture was not ready"),
        ("test_case[2]", "the case"),
    ):
        after = printed.partition(f"FLAKY test_it.py::{name}")[2]
        assert text in after.partition("tests/FLAKY.md gets:")[0]
    assert re.match(r"2 passed, 3 flaky in [\d.]+s", printed.strip().splitlines()[-1])


@pytest.mark.search
@pytest.mark.parametrize(
    ("more", "table", "reason", "closing"),
    [
        (
            "def test_fourth(): assert not first_time('fourth')",
            _HEAD,
            "4 tests are flaky: a run may have 3",
            "2 passed, 4 flaky",
        ),
        (
            "def test_broken(): assert first_time('x') is None, 'broken for good'",
            _HEAD,
            "test_it.py::test_broken failed twice",
            "1 failed, 2 passed, 3 flaky",
        ),
        (
            "",
            _HEAD + "| 2026-11-27 | `test_it.py::test_flaky` |  |  |\n",
            "test_it.py::test_flaky is flaky again",
            "2 passed, 3 flaky",
        ),
        (
            (
                "@pytest.mark.parametrize('n', range(8))\n"
                "def test_many(n): assert not first_time(f'many {n}')"
            ),
            _HEAD,
            "11 tests failed: more than 10 are not run once more",
            "10 failed, 2 passed, 1 error",
        ),
    ],
)
def test_a_run_is_red_all_the_same(
    tmp_path: Path, more: str, table: str, reason: str, closing: str
) -> None:
    """A fourth one, a second failure, one that stands unmended, and a run that is broken."""
    code, printed = _run(tmp_path, more, table)
    assert code == 1
    assert f"red: {reason}" in printed
    assert printed.strip().splitlines()[-1].startswith(closing)


@pytest.mark.search
def test_a_run_that_stopped_at_its_first_failure_stays_red(tmp_path: Path) -> None:
    """The tests behind it were not run."""
    code, printed = _run(tmp_path, "", _HEAD, "-x")
    assert code == 1
    assert "FLAKY" not in printed


def test_a_mended_test_may_be_flaky_once_more() -> None:
    """Its line has a cause and a commit; the new fault gets a line of its own."""
    mended = Row("2026-11-27", "a", "a race", "`0123abcd`")
    assert judge({"a": True}, [mended]).reasons == ()
    for unmended in (Row("2026-11-28", "a", "", ""), Row("2026-11-28", "a", "a race", "soon")):
        assert judge({"a": True}, [mended, unmended]).reasons


def test_the_table_of_this_clone_can_be_read() -> None:
    """Each line has a date, a test that is there, a cause and a commit, or the last two open."""
    root = _SUPPORT.parents[1]
    for row in rows((root / "tests" / "FLAKY.md").read_text(encoding="utf-8")):
        assert (root / row.test.partition("::")[0]).is_file(), row


def test_a_line_that_is_no_row_is_refused() -> None:
    """A typing error in the table must not make a test look mended."""
    with pytest.raises(ValueError, match="no row of date"):
        rows(_HEAD + "| today | test_x | ? | ? |\n")
