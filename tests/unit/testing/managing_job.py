"""A manager of a job's own, for the job of ``joining_job``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from homeport.container.api import (
    AdjunctDataStoreManager,
    AdjunctDataStoreManagerFactory,
    AdjunctEntries,
    BaseStorageManager,
    IncomingMessage,
    OffsetManager,
    Partition,
)


class _Given(NamedTuple):
    """What the factory was given."""

    task_name: str
    task_inputs: str
    ssps: Collection[Partition]
    container_storage: BaseStorageManager
    task_storage: BaseStorageManager
    writes_container_stores: bool
    offsets: OffsetManager


given: dict[str, _Given] = {}
"""{task: what the factory was given last}."""
made: dict[str, Manager] = {}


class Managers(AdjunctDataStoreManagerFactory):
    """Makes a ``Manager`` for each task; fails where the configuration says so."""

    def get_adjunct_data_store_manager(
        self,
        task_name: str,
        config: Mapping[str, str],
        ssps: Collection[Partition],
        container_storage_manager: BaseStorageManager,
        task_storage_manager: BaseStorageManager,
        should_write_to_container_stores: bool,  # noqa: FBT001 - as the base class
        offset_manager: OffsetManager,
    ) -> AdjunctDataStoreManager:
        """As the base class."""
        if config.get("fails") == "yes":
            raise ValueError("no manager today")
        given[task_name] = _Given(
            task_name,
            config["task.inputs"],
            ssps,
            container_storage_manager,
            task_storage_manager,
            should_write_to_container_stores,
            offset_manager,
        )
        made[task_name] = Manager(
            container_storage_manager.adjunct("airlines"), task_storage_manager.adjunct("planes")
        )
        return made[task_name]


class Manager(AdjunctDataStoreManager):
    """A plane's record names several tails; names of airlines are written large.

    ``seen``: the keys that it has been handed.
    """

    def __init__(self, airlines: AdjunctEntries | None, planes: AdjunctEntries | None) -> None:
        self._airlines = airlines
        self._planes = planes
        self.seen: list[Any] = []

    def process(self, message: IncomingMessage) -> bool:
        """As the base class; some keys say what goes wrong."""
        self.seen.append(message.key)
        if message.key == "leave":
            return False
        if message.key == "raise":
            raise ValueError("cannot do it")
        if message.stream == "airlines":
            assert self._airlines is not None
            name = message.value
            self._airlines.put(message.key, None if name is None else name.upper())
        elif message.key != "skip":
            assert self._planes is not None
            entries = self._airlines if message.key == "other" else self._planes
            assert entries is not None
            for tail in (message.value or {}).get("tails", [message.key]):
                model = None if message.value is None else {"model": message.value["model"]}
                entries.put(None if tail == "none" else tail, model)
        return True
