"""The pictures of docs/dashboard.md, of a real job on YARN that loses a host.

``--pictures docs/images`` writes them there; without it they are only looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser import Page, find_chromium, page_in_chromium
from failover_scenarios import Feed
from standby_jobs import standby_job
from yarn_jobs import Job

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        find_chromium() is None, reason="no Chromium: scripts/setup.sh --with browser installs it"
    ),
]

ALL = "All 6 containers are where they should be."
LIMIT_S = 240.0
POINTS = 8
"""Of a plot, one each 15 s: before there are some, it says nothing."""
MOST_BYTES = 200_000
_DRAWN = """(document.querySelector('#work-0 .spark path')?.getAttribute('d') ?? '')
    .split(/[ML]/).length - 1"""
_WIDE, _PHONE = (1280, 900), (390, 844)


def test_the_page_is_shown_as_it_is(
    make_job: Callable[[str], Job], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """At work in the dark scheme; with a lost host in the light one, and on a phone."""
    given = request.config.getoption("--pictures")
    folder = tmp_path if given is None else Path(given)
    # A group has a replica on each host: with a host lost, some have no place, and that stays so.
    job = standby_job(make_job, "totals", containers=2, replicas=2)
    job.produce(600)
    job.run()
    before = job.wait_until_running()
    am = job.am_host()
    lost = next(c["host"] for c in before.values() if c["role"] == "active" and c["host"] != am)
    feed = Feed(job)
    feed.go_on()
    try:
        with page_in_chromium(tmp_path) as page:
            page.look(width=_WIDE[0], height=_WIDE[1])
            page.open(f"{job.url}ui/")
            page.until(f"document.querySelector('h1')?.innerText === {ALL!r}", LIMIT_S)
            page.until(f"({_DRAWN}) >= {POINTS}", LIMIT_S)
            taken = [_picture(page, folder / "dashboard-dark.png", _WIDE, is_dark=True)]
            page.look(width=_WIDE[0], height=_WIDE[1])
            job.cluster.kill_node(lost)
            page.until(
                f"document.querySelector('h1').innerText.includes('{lost} is lost')", LIMIT_S
            )
            taken.append(_picture(page, folder / "dashboard.png", _WIDE, is_dark=False))
            taken.append(_picture(page, folder / "dashboard-phone.png", _PHONE, is_dark=True))
            assert page.problems == []
    finally:
        feed.stop()
        job.cluster.start_node(lost)
    assert all(0 < size < MOST_BYTES for size in taken), taken
    job.kill()


def _picture(page: Page, file: Path, size: tuple[int, int], *, is_dark: bool) -> int:
    """Its size, once the page is drawn as wide as that."""
    width, height = size
    page.look(width=width, height=height, dark=is_dark)
    page.until(f"innerWidth === {width} && document.body.dataset.drawn")
    page.run("scrollTo(0, 0)")
    page.picture(file)
    return file.stat().st_size
