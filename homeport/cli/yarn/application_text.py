"""What run-job prints of an application on YARN."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from homeport.appmaster.yarn.node_names import NodeNames
from homeport.appmaster.yarn.resource_manager_rest import Application

_STORY_LINES = 4


def end_of(application: Application) -> str:
    """How an application that has ended did so, in one line.

    Of long diagnostics, as YARN's own of an attempt are, it has the two first and the last.
    """
    lines = [" ".join(line.split()) for line in application.diagnostics.splitlines()]
    lines = [line for line in lines if line]
    if len(lines) > _STORY_LINES:
        lines = [*lines[:2], "...", lines[-1]]
    story = f": {' '.join(lines)}" if lines else ""
    return (
        f"{application.application_id} ended as {samza_status(application)} "
        f"({application.final_status}){story}"
    )


def samza_status(application: Application | None) -> str:
    """The reference's word for the state of a job."""
    if application is None:
        return "New"
    if application.is_active:
        return "Running" if application.state == "RUNNING" else "New"
    return "SuccessfulFinish" if application.final_status == "SUCCEEDED" else "UnsuccessfulFinish"


def log_place(application: Application) -> str:
    """Where the log of an application's AM is."""
    url = application.am_log_url
    if not url:
        return f"yarn logs -applicationId {application.application_id}"
    # A local cluster's nodes have names that no browser can resolve.
    parts = urlsplit(url)
    endpoint = NodeNames.from_environment(os.environ).with_known_address(parts.netloc)
    return parts._replace(netloc=endpoint).geturl()
