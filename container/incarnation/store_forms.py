"""The check, by the coordinator stream, that a container's serdes read its stores.

Source: COORD, benefit 3: a value "that only a fixed configuration can read".
"""

from __future__ import annotations

from homeport.container.container_job import ContainerJob
from homeport.container.serde.forms import in_brief, require_readable
from homeport.container.storage.container_storage import ContainerStorage
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.state_facts import StateFactManager, StoreForms


def require_forms(stream: CoordinatorStream, job: ContainerJob, storage: ContainerStorage) -> None:
    """Require that the serdes that wrote a store read it; give ``storage`` its forms.

    The first container that has a store writes down the forms of its changelog.

    Args:
        stream: read to its head; the container's permit is the newest.
        job: of the container.
        storage: not restored yet.

    Raises:
        ConfigError: a schema has changed under the values of a store.
    """
    facts = StateFactManager(stream)
    known = facts.forms()
    found: dict[str, StoreForms] = {}
    brief: dict[str, tuple[str, str]] = {}
    for store in job.stores:
        if store.changelog is not None:
            changelog = str(store.changelog)
            serdes = store.key_serde, store.msg_serde
            forms = require_readable(store.name, serdes, known.get(changelog))
            found[changelog], brief[store.name] = forms, in_brief(forms)
    stream.write(list(facts.form_messages(found)))
    storage.forms = brief
