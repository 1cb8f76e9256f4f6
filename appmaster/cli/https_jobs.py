"""Where running jobs answer that serve https, as their coordinator streams say."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from homeport.appmaster.cli.am_address import am_address
from homeport.appmaster.yarn.resource_manager_rest import Application
from homeport.appmaster.yarn.submission import job_tag
from homeport.config.config import Config
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore

_SOURCE = "metrics-targets"


class HttpsJobs:
    """Some jobs, by their configurations; ``url`` may be called from several threads.

    A coordinator stream is opened when its job is seen to run, and stays open.
    """

    def __init__(self, configs: Iterable[Config]) -> None:
        self._configs = {job_tag(config): config for config in configs}
        self._stores: dict[str, CoordinatorStreamStore] = {}
        self._lock = threading.Lock()

    def url(self, application: Application) -> str | None:
        """Where its ApplicationMaster answers; "": nowhere yet; None: it is none of these jobs.

        Raises:
            UnavailableError: Kafka does not answer.
        """
        tag = next((tag for tag in application.tags if tag in self._configs), None)
        if tag is None:
            return None
        with self._lock:
            store = self._stores.get(tag)
            if store is None:
                store = CoordinatorStreamStore.of(self._configs[tag], source=_SOURCE)
                store.bootstrap()
                self._stores[tag] = store
            address = am_address(store, application.application_id)
        return "" if address is None else address.url
