"""What an operator does by HTTP to a job on a real YARN cluster."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from yarn_jobs import Job


def act(
    job: Job, token: str, action: str, *, dry_run: bool = True, **body: object
) -> tuple[int, dict[str, Any]]:
    """Status and body of one action."""
    request = urllib.request.Request(  # noqa: S310 - of the job's AM
        f"{job.url}ui/actions/{action}",
        json.dumps({"dry_run": dry_run, **body}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - of the job's AM
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.loads(refusal.read())
