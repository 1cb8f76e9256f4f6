"""The settings of the driver and the allocator, from the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from homeport.appmaster.allocation.protocol.events import ShutdownRequested
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.allocation.retries import LAUNCH_RETRY_MS
from homeport.appmaster.attempt.inherited import Inheritance
from homeport.appmaster.lease.lease_table import margin_ms, unseen_ms
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.log_section import LogConfig
from homeport.config.settings.sections import (
    ClusterManagerConfig,
    JobConfig,
    StandbyConfig,
    TaskConfig,
    has_spark_beside,
)
from homeport.job_coordinator.history.writer import history_directory
from homeport.job_coordinator.model.ids import host_of
from homeport.job_coordinator.model.incarnation import Incarnation


@dataclass(frozen=True)
class DriverSettings:
    """The settings of the driver, and what earlier drivers have left it. Times in ms.

    ``environment``: variables of each launcher. ``unseen_ms``: how long an incarnation that this
    attempt permits can run on under a higher rank. ``adopt``: what an earlier driver of this
    attempt may have left running. ``inherited``: what this attempt found; ``recorded_stops``: those
    of it that have stopped. ``ending``: the end that an earlier driver began.
    """

    check_in_interval_ms: int
    lease_ms: int
    catch_up_interval_ms: int
    environment: Mapping[str, str]
    unseen_ms: int
    adopt: tuple[Incarnation, ...] = ()
    inherited: Inheritance = field(default_factory=Inheritance)
    recorded_stops: frozenset[Incarnation] = frozenset()
    ending: ShutdownRequested | None = None

    @staticmethod
    def of(config: Config) -> DriverSettings:
        """Return the settings that the configuration gives, without anything of earlier drivers."""
        job, manager = JobConfig.of(config), ClusterManagerConfig.of(config)
        task = TaskConfig.of(config)
        goes_on_ms = unseen_ms(job.isolation_max_ms, manager.lease_ms)
        return DriverSettings(
            check_in_interval_ms=manager.check_in_interval_ms,
            lease_ms=manager.lease_ms,
            catch_up_interval_ms=job.catch_up_interval_ms,
            environment={
                **LogConfig.of(config).variables(),
                "HOMEPORT_CHECK_IN_INTERVAL_MS": str(manager.check_in_interval_ms),
                "HOMEPORT_LOST_MS": str(goes_on_ms),
                "HOMEPORT_HANG_MS": str(task.hang_ms),
                "HOMEPORT_SHUTDOWN_MS": str(task.shutdown_ms),
                "HOMEPORT_MEMORY_MB": str(manager.container_memory_mb),
                "HOMEPORT_CLEAN_AFTER_MS": str(keys.JOB_HOSTS_CLEAN_AFTER_MS.find(config) or 0),
                # Relative: below the folder for state of the launcher's own host.
                "HOMEPORT_HISTORY_DIR": str(
                    history_directory(job.history_dir, "", job.directory_name)
                ),
                "HOMEPORT_HISTORY_MAX_MB": str(job.history_max_mb),
                # For hosts without LOGGED_STORE_BASE_DIR.
                "HOMEPORT_LOGGED_STORE_BASE_DIR": job.logged_store_base_dir or "",
            },
            unseen_ms=goes_on_ms,
        )

    def configured(self, config: Config) -> DriverSettings:
        """Return the settings under another configuration; fields of earlier drivers stay."""
        new = DriverSettings.of(config)
        return replace(
            self,
            check_in_interval_ms=new.check_in_interval_ms,
            catch_up_interval_ms=new.catch_up_interval_ms,
            environment=new.environment,
        )


def allocator_settings(config: Config) -> AllocatorSettings:
    """Return the allocator's settings."""
    manager, task = ClusterManagerConfig.of(config), TaskConfig.of(config)
    silence_ms = manager.lease_ms + margin_ms(manager.lease_ms)
    return AllocatorSettings(
        host_affinity_enabled=JobConfig.of(config).host_affinity_enabled,
        retry_count=manager.retry_count,
        retry_window_ms=manager.retry_window_ms,
        fail_job_after_retries=manager.fail_job_after_retries,
        request_timeout_ms=manager.request_timeout_ms,
        check_in_timeout_ms=manager.check_in_timeout_ms,
        last_retry_delay_ms=manager.last_retry_delay_ms,
        launch_retry_ms=LAUNCH_RETRY_MS,
        silence_ms=silence_ms,
        # A launcher ends a child that does not stop in the first, or is silent for the second.
        stop_timeout_ms=task.shutdown_ms + silence_ms,
        mixes_roles=StandbyConfig.of(config).is_mixed,
        racks_are_preferred=keys.FAULT_DOMAINS_PREFERRED.read(config),
        racks_are_apart=keys.FAULT_DOMAINS_REQUIRED.read(config),
        warm_lag=keys.WARM_MOVE_MAX_RECORDS.read(config),
        own_have_spark=has_spark_beside(config, task, is_temporary=False),
        # A mixed container's is in its own process, which the active gets.
        temporary_have_spark=not StandbyConfig.of(config).is_mixed
        and has_spark_beside(config, task, is_temporary=True),
        drained_hosts=frozenset(map(host_of, keys.DRAINED_HOSTS.read(config))),
        command_timeout_ms=keys.COMMAND_TIMEOUT_MS.read(config),
        container_memory_mb=manager.container_memory_mb,
        container_cores=manager.container_cpu_cores,
    )
