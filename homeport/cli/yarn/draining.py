"""Orders to end a job: once it has processed what its inputs hold, or at once."""

from __future__ import annotations

import os

from homeport.appmaster.yarn.resource_manager_rest import Application
from homeport.cli.yarn.application import am_address
from homeport.cli.yarn.job import SOURCE, Job
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.client_files import application_secret, read_token, token_path
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.metadata.configuration import ConfigManager


def order_drain(job: Job) -> str:
    """Write the order to the stream, until the next deployment; return a line about it.

    UnavailableError: the job does not run, or YARN or Kafka does not answer.
    """
    application = job.last_application()
    if application is None or not application.is_active:
        raise UnavailableError(f"{job.name} is not running: there is nothing to drain")
    with job.stream() as store:
        is_new = write_order(store)
    id_ = application.application_id
    said = f"ordered {id_} to drain" if is_new else f"{id_} drains already, by an earlier order"
    return f"{said}; it ends by itself: --operation=wait waits for that"


def write_order(stream: CoordinatorStream) -> bool:
    """Write the order to the stream, read to its head; return False where it was there.

    A deployment removes what is neither in its file nor set by hand, and so the order.
    ConfigError: the key of the order was set by hand to something else.
    """
    manager, key = ConfigManager(stream), keys.JOB_DRAIN.name
    if keys.JOB_DRAIN.read(manager.read()):
        return False
    by_hand = manager.written().get(key)
    if by_hand is not None:
        raise ConfigError(
            key,
            by_hand,
            "it was set by coordinator-stream-writer, which stands above this order",
            f"take it back: coordinator-stream-writer --type set-config --key {key} --delete",
        )
    manager.set(key, "true", SOURCE)
    return True


def order_shutdown(job: Job, application: Application) -> None:
    """Order the AM to end the job.

    ConfigError: there is no token. UnavailableError: no AM answers. WireError: what answers is
    not the AM of this submission; it gets no token.
    """
    token = read_token(token_path(os.environ, application.application_id))
    with job.stream() as store:
        address = am_address(store, application.application_id)
    if address is None:
        raise UnavailableError("its AM has published no address")
    secret = application_secret(os.environ, application.application_id)
    client = CoordinatorClient(address.url, token, certificate=address.certificate, secret=secret)
    if secret is not None:
        client.require_proof(secret)
    client.shutdown()
