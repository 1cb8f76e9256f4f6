"""What the configuration says to the allocator."""

from __future__ import annotations

from homeport.appmaster.driver.driver_settings import allocator_settings
from homeport.config.config import Config

JOB = {"job.name": "j", "job.default.system": "kafka", "job.host-affinity.enabled": "true"}


def test_a_standby_may_take_as_long_as_its_launcher_can_need_to_end_it() -> None:
    """The time for its shutdown; a launcher that says nothing is silent after lease and margin."""
    keys = {"task.shutdown.ms": "7000", "cluster-manager.container.lease.ms": "3000"}
    settings = allocator_settings(Config({**JOB, **keys}))
    assert (settings.silence_ms, settings.stop_timeout_ms) == (3600, 10600)


def test_racks_are_looked_at_only_where_the_configuration_says_so() -> None:
    """Soft by Samza's key, hard by ours."""
    plain = allocator_settings(Config(JOB))
    assert (plain.racks_are_preferred, plain.racks_are_apart) == (False, False)
    prefix = "cluster-manager.fault-domain-aware.standby."
    keys = {f"{prefix}enabled": "true", f"{prefix}required": "true"}
    aware = allocator_settings(Config({**JOB, **keys}))
    assert (aware.racks_are_preferred, aware.racks_are_apart) == (True, True)


def test_a_warm_move_takes_its_limits_from_the_configuration() -> None:
    """How near the standby must be, and whose spare is to have a Spark."""
    plain = allocator_settings(Config(JOB))
    assert (plain.warm_lag, plain.own_have_spark, plain.temporary_have_spark) == (
        10_000,
        False,
        False,
    )
    keys = {
        "cluster-manager.warm-move.max.records": "0",
        "cluster-manager.command.timeout.ms": "7",
        "cluster-manager.container.memory.mb": "1280",
        "task.pipeline.class": "m:p",
    }
    near = allocator_settings(Config({**JOB, **keys}))
    assert (plain.command_timeout_ms, near.command_timeout_ms) == (600_000, 7)
    assert (near.warm_lag, near.own_have_spark, near.temporary_have_spark) == (0, False, True)
    prewarmed = allocator_settings(Config({**JOB, **keys, "job.hotstandby.prewarm": "true"}))
    assert prewarmed.own_have_spark
    roles = {"job.container.mixed-roles": "true", "job.hotstandby.enabled": "true"}
    mixed = allocator_settings(Config({**JOB, **keys, **roles}))
    assert (mixed.mixes_roles, mixed.temporary_have_spark) == (True, False)
