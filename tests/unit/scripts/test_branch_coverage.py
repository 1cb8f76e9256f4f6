"""What branches are counted of, and by which tests."""

from pathlib import Path

from branch_coverage import mirrors_of, pure_modules

ROOT = Path(__file__).resolve().parents[3]


def test_the_measured_packages_are_the_pure_ones() -> None:
    """The allocator among it, with the folders that mirror the packages."""
    modules = pure_modules()
    assert "homeport.appmaster.allocation" in modules
    folders = mirrors_of(modules)
    assert {"tests/unit/appmaster/allocation", "tests/unit/config", "tests/transcripts"} <= {
        *folders
    }
    assert "tests/unit/job_coordinator/metadata" in folders
    assert all((ROOT / folder).exists() for folder in folders)
