"""Where the ApplicationMaster of an application answers, as it says in the coordinator stream."""

from __future__ import annotations

from typing import NamedTuple

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import HomeportError, NoRightError
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata import epochs
from homeport.job_coordinator.metadata.configuration import ConfigManager


class AmAddress(NamedTuple):
    """Where an AM answers; ``certificate``: as PEM, where it speaks TLS."""

    url: str
    certificate: str | None


def am_address(store: CoordinatorStreamStore, application_id: str) -> AmAddress | None:
    """Where the AM of that application says that it answers; None where it has not said so."""
    store.catch_up()
    epoch = epochs.EpochManager(store).read_am_epoch()
    if epoch is None or epoch.rank.application != application_id:
        return None
    recorded = ConfigManager(store).read()
    url = recorded.get_str(keys.YARN_AM_TRACKING_URL.name)
    certificate = recorded.get_str(keys.YARN_AM_CERTIFICATE.name)
    return None if url is None else AmAddress(url, certificate)


def is_answering(address: AmAddress) -> bool:
    """Whether an AM answers there."""
    try:
        CoordinatorClient(address.url, None, 2.0, address.certificate).status_body()
    except NoRightError:
        return True
    except HomeportError:
        return False
    return True
