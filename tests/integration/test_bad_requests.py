"""10,000 bad requests to the server of a real driver: no fault, no growth, no secret."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import bad_requests_run

COUNT, PARTS = 10_000, 5
GROWTH_KB = COUNT // PARTS
"""A leak of one kilobyte a request is as much in each part."""


def test_bad_requests_do_no_harm(tmp_path: Path) -> None:
    """Each has an answer below 500, or none; nothing stays behind, nothing secret comes out."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as processes:
        found = processes.submit(bad_requests_run.run, tmp_path, COUNT, PARTS).result()
    assert found.faults == []
    assert {200, 400, 401, 403, 404, 405, 415, 429} <= set(found.statuses)
    # What the allocator keeps comes and goes; a leak is in each part.
    assert min(found.growth_kb) < GROWTH_KB
    assert "audit" in found.said
    assert bad_requests_run.MARK not in found.said
