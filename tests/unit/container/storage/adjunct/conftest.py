"""The host of the tests of adjunct stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.container.storage.adjunct.adjunct_hosts import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """An empty one."""
    return Host(tmp_path)
