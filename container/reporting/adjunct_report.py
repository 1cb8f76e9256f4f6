"""The report of adjunct stores, of active containers and of standbys."""

from dataclasses import replace

from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage
from homeport.container.storage.adjunct.filled_store import StoreFacts
from homeport.job_coordinator.status.container_report import AdjunctState


def adjunct_states(
    storage: AdjunctStorage | None, source: InputConsumer
) -> tuple[AdjunctState, ...]:
    """Return each store of an active container as it stands; ``source``: reads their streams."""
    if storage is None:
        return ()
    now_ms = storage.now_ms()
    found = []
    for planned, facts in storage.facts():
        partitions = planned.partitions
        state = adjunct_state_of(planned, facts, now_ms, source.lag_of(partitions))
        left = source.bootstrap_left(partitions)
        if left is not None:
            state = replace(state, remaining=left[0], seconds_left=left[1])
        found.append(state)
    return tuple(found)


def adjunct_state_of(
    planned: PlannedStore, facts: StoreFacts, now_ms: int, lag: int | None
) -> AdjunctState:
    """Return one store as it stands; ``lag``: offsets up to the ends of its partitions."""
    store = planned.store
    return AdjunctState(
        store=store.name,
        task=planned.writer,
        input=str(store.stream),
        kind="broadcast" if store.is_broadcast else "partitioned",
        records=facts.records,
        bytes=facts.size_bytes,
        positions={str(ssp.partition): at for ssp, at in sorted(facts.positions.items())},
        lag=lag,
        age_seconds=facts.age_s(now_ms),
        version=facts.version,
        late=facts.late,
        awaits=facts.awaits,
    )
