"""The dashboard of a real standalone job, in a real Chromium: a processor dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import find_chromium, page_in_chromium
from standalone_jobs import on_zookeeper, standalone_job
from zookeeper_server import ZooKeeperServer

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium: scripts/setup.sh --with browser installs it"
)

BOTH = "All 2 containers are where they should be."
ONE = "The only container is where it should be."
LIMIT_S = 60.0


def test_the_page_follows_a_processor_that_is_killed(
    kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    """Opened at a processor that follows, it is the leader's; the plots have the job's own work."""
    more = {
        **on_zookeeper(zookeeper.connect),
        "cluster-manager.jobcoordinator.url.host": "127.0.0.1",
        "my.own.password": "hunter2",
    }
    (tmp_path / "job").mkdir()
    with standalone_job(kafka, tmp_path / "job", more) as job, page_in_chromium(tmp_path) as page:
        job.produce(20)
        job.processor("one")
        job.until(lambda: job.started_by("one") > 0)
        two = job.processor("two")
        job.until(lambda: job.started_by("two") > 0 and job.started_by("one") > 1)
        log_text = (job.folder / "two.log").read_text(encoding="utf-8")
        address = next(word for word in log_text.split() if word.startswith("http://127.0.0.1:"))
        page.open(f"{address.rstrip('/.,')}/ui/")
        page.until(f"document.querySelector('h1')?.innerText === {BOTH!r}", LIMIT_S)
        assert page.text('[data-id="one"].card .card-fact').startswith("leads the job")
        assert not page.run("location.href").startswith(address)
        page.press("3")
        page.until("document.querySelector('#configuration').innerText.includes('my.own.password')")
        assert "hunter2" not in page.run("document.documentElement.outerHTML")
        assert "out of each processor's own file" in page.text("#configuration-note")
        page.press("2")
        page.until("document.querySelectorAll('#decisions > li').length > 0")
        assert page.problems == []
        two.kill()
        page.until(f"document.querySelector('h1').innerText === {ONE!r}", LIMIT_S)
        page.press("1")
        page.until("document.querySelectorAll('#work tr').length === 1")
        assert page.accessibility() == []
        assert page.problems == []
