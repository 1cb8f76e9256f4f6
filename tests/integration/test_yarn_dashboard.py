"""The dashboard of a real job on YARN, in a real Chromium, through the ResourceManager's proxy."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import find_chromium, page_in_chromium
from yarn_jobs import Job

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        find_chromium() is None, reason="no Chromium: scripts/setup.sh --with browser installs it"
    ),
]

CALM = "All 3 containers are where they should be."
LIMIT_S = 60.0


def test_the_page_follows_a_container_that_is_killed(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """Its successor is on the page; decisions, configuration and JobModel are there."""
    job = make_job("shown")
    job.produce(600)
    job.run()
    containers = job.wait_until_running()
    proxy = f"{job.cluster.rm_url}/proxy/{job.application_id}/pages/homeport/ui/"
    with page_in_chromium(tmp_path) as page:
        page.open(proxy)
        page.until(f"document.querySelector('h1')?.innerText === {CALM!r}", LIMIT_S)
        os.kill(containers["1"]["pid"], signal.SIGKILL)
        # Its successor may be there before the page looks again.
        page.until("document.body.innerText.includes('container-1-2.log')", LIMIT_S)
        page.until(f"document.querySelector('h1').innerText === {CALM!r}", LIMIT_S)
        page.press("2")
        page.until("document.querySelector('#decisions').innerText.includes('rocessor 1')")
        page.press("3")
        page.until("document.querySelector('#configuration').innerText.includes('run-job by ')")
        page.press("4")
        page.until("document.querySelectorAll('#model tr').length > 0")
        assert page.problems == []
