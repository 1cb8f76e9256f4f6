"""What the configuration decides of allocation; it may change while the job runs.

PURE.
"""

from dataclasses import dataclass

from homeport.job_coordinator.model.ids import Host


@dataclass(frozen=True, slots=True)
class AllocatorSettings:
    """The part of the configuration that decides, from ``ClusterManagerConfig`` and ``JobConfig``.

    Attributes:
        retry_count: failures that are forgiven; below zero: all.
        last_retry_delay_ms: see ``retries``; 0: no delay.
        launch_retry_ms: the same.
        silence_ms: the time within which hosts fall silent "at once"; see ``exclusion``.
        container_memory_mb: the size of every container, active or standby (safety P4); 0: not
            known, fits everywhere.
        container_cores: the same.
        stop_timeout_ms: how long a standby may take to stop for its active.
        mixes_roles: containers have standbys of other ones' tasks in place of standby containers.
        racks_are_preferred: the containers of a group run in different racks if possible.
        racks_are_apart: they always do.
        warm_lag: the largest lag of a standby, in records, that ends the wait of a warm move.
        own_have_spark: whether the spares beside the job's own standbys are to have a Spark ready.
        temporary_have_spark: the same for temporary standbys.
        spark_timeout_ms: how long a warm move waits for that Spark.
        drained_hosts: where no container is placed.
        command_timeout_ms: how long an operator's command may make no progress.
    """

    host_affinity_enabled: bool
    retry_count: int
    retry_window_ms: int
    fail_job_after_retries: bool
    request_timeout_ms: int
    check_in_timeout_ms: int
    last_retry_delay_ms: int = 0
    launch_retry_ms: int = 0
    silence_ms: int = 12_000
    container_memory_mb: int = 0
    container_cores: int = 0
    stop_timeout_ms: int = 60_000
    mixes_roles: bool = False
    racks_are_preferred: bool = False
    racks_are_apart: bool = False
    warm_lag: int = 10_000
    own_have_spark: bool = False
    temporary_have_spark: bool = False
    spark_timeout_ms: int = 120_000
    drained_hosts: frozenset[Host] = frozenset()
    command_timeout_ms: int = 600_000
