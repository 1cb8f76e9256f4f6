"""Whether the state and the input positions that a job has fit what it is to run with."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.appmaster.cli import one_time_configuration, preflight, state_reset
from homeport.appmaster.cli.job import Job
from homeport.appmaster.cli.waiting import say
from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_facts import StateFactManager, StoreForms


def check_state(job: Job, *, reset_state: bool) -> Mapping[str, StoreForms]:
    """The state that the job has, if any, fits its configuration, or may be thrown away.

    Returns:
        {changelog: how what it holds is read}, of the state that stays.

    Raises:
        ConfigError: it does not; nothing has been written.
    """
    before, forms = Config(), dict[str, StoreForms]()
    if job.has_stream():
        with job.stream() as store:
            before = ConfigManager(store).read()
            if not reset_state:
                forms = StateFactManager(store).forms()
                one_time_configuration.require_unchanged(store, job.config)
                preflight.check_changelogs(job.config, store, say)
                preflight.check_checkpoints(job.config, store)
                preflight.check_inputs(job.config, store, say)
    elif not reset_state:
        preflight.check_changelogs(job.config, InMemoryCoordinatorStream(), say)
    if reset_state:
        topics = state_reset.state_topics(before, job.config)
        state_reset.check_topics(topics, job.config, before)
    return forms
