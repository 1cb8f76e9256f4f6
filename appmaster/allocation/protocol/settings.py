"""What the configuration decides of allocation; it may change while the job runs.

PURE.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeport.job_coordinator.model.ids import Host


@dataclass(frozen=True, slots=True)
class AllocatorSettings:
    """The part of the configuration that decides, from ``ClusterManagerConfig`` and ``JobConfig``.

    ``retry_count``: failures that are forgiven, below zero all of them. ``strict_hosts``: hosts
    that can be asked for by name, fixed when the application was submitted; None: every live host.
    ``last_retry_delay_ms``, ``launch_retry_ms``: see ``retries``; 0 for no rest. ``silence_ms``: in
    what time hosts that fall silent do so at once. ``exclusion_ms``: after what time an excluded
    host is probed; see ``exclusion``. ``container_memory_mb``, ``container_cores``: the size of
    every container, of both roles (safety P4); 0: not known, and fits everywhere.
    ``stop_timeout_ms``: how long a standby may take to stop for its active.
    ``racks_are_preferred``: the containers of a group are put in different racks where possible;
    ``racks_are_apart``: always. ``warm_lag``: how many records a standby may be behind when its
    active container stops for a warm move. ``own_have_spark``, ``temporary_have_spark``: whether
    the spare beside the job's own standbys, or beside temporary ones, is to have a Spark ready,
    which a warm move waits for, but no longer than ``spark_timeout_ms``. ``drained_hosts``: where
    no container is placed. ``command_timeout_ms``: how long an operator's command may come no
    further.
    """

    host_affinity_enabled: bool
    retry_count: int
    retry_window_ms: int
    fail_job_after_retries: bool
    request_timeout_ms: int
    check_in_timeout_ms: int
    strict_hosts: tuple[Host, ...] | None = None
    last_retry_delay_ms: int = 0
    launch_retry_ms: int = 0
    silence_ms: int = 12_000
    exclusion_ms: int = 60_000
    container_memory_mb: int = 0
    container_cores: int = 0
    stop_timeout_ms: int = 60_000
    racks_are_preferred: bool = False
    racks_are_apart: bool = False
    warm_lag: int = 10_000
    own_have_spark: bool = False
    temporary_have_spark: bool = False
    spark_timeout_ms: int = 120_000
    drained_hosts: frozenset[Host] = frozenset()
    command_timeout_ms: int = 600_000
