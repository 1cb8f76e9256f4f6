"""Hosts of their own that lose their network: the scenarios of the network tests, in containers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cut_off_active import isolate_an_active
from yarn_jobs import Job

from tests.faults import Faults


@pytest.mark.long
def test_an_isolated_active_ends_within_its_lease_and_writes_nothing_after_the_fence(
    make_job: Callable[[str], Job], faults: Faults, announce: Callable[[str], None]
) -> None:
    """As on network namespaces: see ``cut_off_active``."""
    isolate_an_active(make_job("isolated"), faults, announce)
