"""Compares other machines' clocks with ours, by the dates in answers of their web services."""

import http.client
import time
import urllib.error
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from homeport.appmaster.doctor.clock_checks import ahead_s
from homeport.job_coordinator.http.direct import OPENER

_TIMEOUT_S = 3.0


def clocks_ahead(urls: Mapping[str, str]) -> dict[str, float | None]:
    """Return {machine: seconds by which its clock is ahead of ours; None: unknown}.

    ``urls``: {machine: URL of a web service on it}. A negative number means that the clock is
    behind. The real difference is that number or larger.
    """
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(urls, pool.map(_ahead_s, urls.values()), strict=True))


def _ahead_s(url: str) -> float | None:
    before_s = time.time()
    try:
        with OPENER.open(url, timeout=_TIMEOUT_S) as answer:
            date = answer.headers.get("Date")
    except urllib.error.HTTPError as refusal:
        with refusal:
            date = refusal.headers.get("Date")
    except (OSError, http.client.HTTPException):
        return None
    return None if date is None else ahead_s(date, before_s, time.time())
