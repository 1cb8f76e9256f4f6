"""An application of the job on YARN: where its AM answers, and what run-job prints of it."""

import os
from typing import NamedTuple
from urllib.parse import urlsplit

from homeport.appmaster.yarn.node_names import NodeNames
from homeport.appmaster.yarn.resource_manager_rest import Application
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import HomeportError, NoRightError
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata import epochs
from homeport.job_coordinator.metadata.configuration import ConfigManager

_STORY_LINES = 4


class AmAddress(NamedTuple):
    """Where an AM answers; ``certificate``: as PEM, where it speaks TLS."""

    url: str
    certificate: str | None


def am_address(store: CoordinatorStreamStore, application_id: str) -> AmAddress | None:
    """Read from the coordinator stream where its AM answers; None where it is not there yet."""
    store.catch_up()
    epoch = epochs.EpochManager(store).read_am_epoch()
    if epoch is None or epoch.rank.application != application_id:
        return None
    recorded = ConfigManager(store).read()
    url = recorded.get_str(keys.YARN_AM_TRACKING_URL.name)
    certificate = recorded.get_str(keys.YARN_AM_CERTIFICATE.name)
    return None if url is None else AmAddress(url, certificate)


def is_answering(address: AmAddress) -> bool:
    """Return whether an AM answers there."""
    try:
        CoordinatorClient(address.url, None, 2.0, address.certificate).status_body()
    except NoRightError:
        return True
    except HomeportError:
        return False
    return True


def end_of(application: Application) -> str:
    """Return how an application has ended, in one line.

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
    """Return Samza's word for the state of a job."""
    if application is None:
        return "New"
    if application.is_active:
        return "Running" if application.state == "RUNNING" else "New"
    return "SuccessfulFinish" if application.final_status == "SUCCEEDED" else "UnsuccessfulFinish"


def log_place(application: Application) -> str:
    """Return where the log of an application's AM is."""
    url = application.am_log_url
    if not url:
        return f"yarn logs -applicationId {application.application_id}"
    # A local cluster's nodes have names that no browser can resolve.
    parts = urlsplit(url)
    endpoint = NodeNames.from_environment(os.environ).with_known_address(parts.netloc)
    return parts._replace(netloc=endpoint).geturl()
