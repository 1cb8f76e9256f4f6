"""The allocator in numbers, from sequences of its own decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    ContainerStopped,
    Event,
    FailoverRecord,
    FailoverStep,
    JobModelPublished,
    LagsReported,
    LauncherSilent,
    PlacementRequested,
    ResourceEnded,
    SettingsChanged,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import EndFailover, WriteFailover
from homeport.appmaster.report.allocator_metrics import MANAGER, AllocatorMetrics, samza_name
from homeport.appmaster.report.recovery import Recovery, RecoveryKind, RecoveryPhase
from homeport.job_coordinator.grouper.standby_models import temporary_id
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    SETTINGS,
    Machine,
    allocated,
    check_in,
    expired,
    inc,
    job,
    live,
    model,
    started,
    stopped,
    wants,
)

OUTCOMES = ("succeeded", "failed", "refused")
SAMZA = "samza_ContainerProcessManagerMetrics"


class Counted(Collector):
    """A machine whose decisions are counted."""

    def __init__(self) -> None:
        self.machine = Machine(
            replace(SETTINGS, container_memory_mb=1024, container_cores=2, retry_count=1)
        )
        self.metrics = AllocatorMetrics()

    def feed(self, *events: Event) -> None:
        """One decision each."""
        for event in events:
            self.metrics.decided(event, self.machine.decide(event))

    def run(self, published: JobModelPublished, *hosts: str) -> None:
        """Each processor runs at home, in r0, r1 and so on."""
        self.feed(published, live(*hosts))
        for number, (processor, host) in enumerate(published.processors.items()):
            self.feed(check_in(f"r{number}", str(host), request=number + 1), started(processor, 1))

    def deploy(self) -> None:
        """Processors 0 and 1 run on a and b, of three hosts."""
        self.run(model({"0": "a", "1": "b"}), "a", "b", "c")

    def collect(self) -> Iterator[Metric]:
        """Prometheus' protocol."""
        return self.metrics.collect(self.machine.state)

    def samples(self) -> dict[str, float]:
        """{name, label values in the order of their names, with blanks between: value}."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return {
            " ".join([s.name, *(s.labels[label] for label in sorted(s.labels))]): s.value
            for family in text_string_to_metric_families(generate_latest(registry).decode())
            for s in family.samples
        }

    def manager(self) -> dict[str, float]:
        """Samza's of the container process manager, by Samza's names."""
        return {
            name.removeprefix(f"{SAMZA}_").removesuffix("_total").replace("_", "-"): value
            for name, value in self.samples().items()
            if name.startswith(f"{SAMZA}_")
        }


@pytest.fixture
def counted() -> Counted:
    """Nothing decided yet."""
    return Counted()


def test_a_deployment_in_samzas_names(counted: Counted) -> None:
    """Every metric of the group is there from the beginning; names are Samza's, spelled back."""
    before = counted.manager()
    assert before["container-count"] == before["job-healthy"] == 0
    counted.deploy()
    stated = counted.manager()
    assert set(stated) == set(before)
    assert stated == before | {
        "running-containers": 2,
        "container-count": 2,
        "job-healthy": 1,
        "preferred-host-requests": 2,
        "host-affinity-match-pct": 100,
        "container-memory-mb": 1024,
        "container-cpu-cores": 2,
    }


def test_the_help_has_group_and_name_as_samza_spells_them(counted: Counted) -> None:
    """What the Prometheus name cannot hold."""
    assert samza_name(MANAGER, "job-healthy") == f"{SAMZA}_job_healthy"
    about = {metric.name: metric.documentation for metric in counted.collect()}
    assert about[f"{SAMZA}_job_healthy"].startswith(f"{MANAGER} job-healthy. ")


def test_requests_that_expire(counted: Counted) -> None:
    """Home, then another host: each counts as what it was."""
    counted.feed(model({"0": "a"}), live("a", "b"), expired(1), expired(2), expired(3))
    stated = counted.manager()
    assert stated["preferred-host-requests"] == 2
    assert stated["expired-preferred-host-requests"] == 1
    assert stated["any-host-requests"] == 2
    assert stated["expired-any-host-requests"] == 2
    assert stated["host-affinity-match-pct"] == 50
    assert stated["needed-containers"] == 1
    assert stated["job-healthy"] == 0


def test_a_request_that_was_made_early_is_one_for_the_preferred_host(counted: Counted) -> None:
    """Also when it runs out."""
    counted.deploy()
    counted.feed(ResourceEnded(RequestId(1)))
    assert counted.manager()["preferred-host-requests"] == 3
    counted.feed(expired(3))
    assert counted.manager()["expired-preferred-host-requests"] == 1


def test_an_unneeded_launcher_is_released(counted: Counted) -> None:
    """And what came for nothing is redundant."""
    counted.deploy()
    counted.feed(check_in("r9", "c"), started("1", 1), LauncherSilent(ResourceId("none")))
    stated = counted.manager()
    assert stated["released-containers"] == 1
    assert stated["redundant-notifications"] == 1
    assert counted.samples()["samza_SamzaAppMasterMetrics_allocated_containers_in_buffer"] == 0


def test_a_container_that_is_found_running(counted: Counted) -> None:
    """By a driver that starts again."""
    counted.feed(model({"0": "a"}, p0=3), live("a"), check_in("r0", "a", inc("0", 3)))
    name = "samza_SamzaAppMasterMetrics_container_from_previous_attempt_total"
    assert counted.samples()[name] == 1


def test_leases_that_run_out(counted: Counted) -> None:
    """The keeper's word."""
    counted.metrics.lease_expired()
    assert counted.samples()["samza_SamzaAppMasterMetrics_heartbeats_expired_total"] == 1


def _failover(step: FailoverStep, standby: str | None) -> WriteFailover:
    host = None if standby is None else Host("b")
    return WriteFailover(
        ProcessorId("0"), 1, None if standby is None else ProcessorId(standby), host, step
    )


def test_failovers_by_kind(counted: Counted) -> None:
    """STANDBY's additional metrics: to a standby, to none; and choices that came to nothing."""
    counted.feed(model({"0": "a"}))
    state = counted.machine.state
    for records in (
        (_failover(FailoverStep.STANDBY, "0-0"),),
        (_failover(FailoverStep.OTHER_HOST, None), _failover(FailoverStep.STANDBY_HOST, "0-1")),
        (_failover(FailoverStep.OTHER_HOST, None),),
        (replace(_failover(FailoverStep.OTHER_HOST, None), used=(ProcessorId("0-0"),)),),
        (EndFailover(ProcessorId("0")),),
        (_failover(FailoverStep.STANDBY, "0-0"),),
    ):
        counted.metrics.decided(ShutdownRequested(), Decision(state, records, ()))
    assert _of_standbys(counted) == (0, 0, 3, 1, 2)
    samples = counted.samples()
    kinds = ("standby", "standby-host", "other-host")
    assert [samples[f"homeport_failovers_total {kind}"] for kind in kinds] == [2, 1, 1]


def test_a_choice_of_an_earlier_driver_that_is_lost(counted: Counted) -> None:
    """That driver has counted the choice; this one counts that it came to nothing."""
    record = FailoverRecord(1, ProcessorId("0-0"), Host("b"), FailoverStep.STANDBY)
    published = job({"0": "b", "0-0": None}, p0=1)
    counted.feed(replace(published, failovers={ProcessorId("0"): record}), live("c"))
    assert _of_standbys(counted) == (0, 0, 0, 1, 1)


def _of_standbys(counted: Counted) -> tuple[float, ...]:
    """Failures of actives and standbys, failovers to a standby and to none, choices for nothing."""
    samples = counted.samples()
    failures = [
        sum(samples[f"homeport_container_failures_total {c} {role}"] for c in ("true", "false"))
        for role in ("active", "standby")
    ]
    failovers = [
        samples[f"{SAMZA}_failovers_to_{where}_total"] for where in ("standby", "any_host")
    ]
    return (*failures, *failovers, samples["homeport_failed_failovers_total"])


def test_two_failovers_of_one_container(counted: Counted) -> None:
    """Each host it runs on is lost: each is a failure and a failover, and the standby's none."""
    counted.run(job({"0": "a", "0-0": "b"}), "a", "b", "c", "d")
    assert _of_standbys(counted) == (0, 0, 0, 0, 0)
    counted.feed(LauncherSilent(ResourceId("r0")), stopped("0-0", 1, StopCause.ORDERED, 143))
    counted.feed(check_in("r1", "b", request=2), started("0", 2))
    counted.feed(check_in("r3", "c", request=3), started("0-0", 2))
    assert _of_standbys(counted) == (1, 0, 1, 0, 0)
    counted.feed(LauncherSilent(ResourceId("r1")))
    counted.feed(LauncherSilent(ResourceId("r1")))  # a second time it is stale
    counted.feed(stopped("0-0", 2, StopCause.ORDERED, 143), check_in("r3", "c", request=3))
    counted.feed(started("0", 3))
    assert _of_standbys(counted) == (2, 0, 2, 0, 0)


@pytest.mark.parametrize(
    ("standby_home", "right"), [("b", (0, 0, 1, 0, 0)), (None, (0, 0, 0, 1, 0))]
)
def test_a_failover_that_begins_with_the_job_model(
    counted: Counted, standby_home: str | None, right: tuple[int, ...]
) -> None:
    """An AM attempt follows one whose host was lost: a new choice for what cannot go home."""
    counted.feed(live("b", "c"), job({"0": "a", "0-0": standby_home}, p0=1))
    assert _of_standbys(counted) == right


def test_an_active_that_comes_home_is_no_failover(counted: Counted) -> None:
    """Nor is one whose home has no room, until it is given up for a standby's place."""
    counted.run(job({"0": "a", "0-0": "b"}), "a", "b", "c")
    counted.feed(stopped("0", 1, StopCause.SIGNALLED, 143))
    counted.feed(check_in("r0", "a", request=1), started("0", 2))
    assert _of_standbys(counted) == (1, 0, 0, 0, 0)
    counted.feed(ResourceEnded(resource_id=ResourceId("r0")))
    assert _of_standbys(counted) == (2, 0, 0, 0, 0)
    counted.feed(expired(3))
    assert _of_standbys(counted) == (2, 0, 1, 0, 0)


def test_requests_of_standbys_where_racks_count(counted: Counted) -> None:
    """Samza's names for those that a rack may refuse; actives are not among them."""
    settings = replace(counted.machine.state.settings, racks_are_preferred=True)
    counted.feed(SettingsChanged(settings), job({"0": "a", "0-0": "b"}), live("a", "b", "c"))
    counted.feed(expired(2), check_in("r1", "c", request=3), started("0-0", 1))
    stated = counted.manager()
    assert stated["fault-domain-aware-container-requests"] == 2
    assert stated["expired-fault-domain-aware-container-requests"] == 1
    assert stated["fault-domain-aware-containers-started"] == 1
    assert stated["failed-fault-domain-aware-container-requests"] == 0


def test_how_long_recoveries_take(counted: Counted) -> None:
    """Whole ones by cause, their phases by kind; none is there before the first."""
    assert not any(name.startswith("homeport_recovery") for name in counted.samples())
    stated = Recovery(
        ProcessorId("0"),
        "killed",
        Host("a"),
        1_000,
        0,
        None,
        4_500,
        {RecoveryPhase.DETECT: 60, RecoveryPhase.RESTORE: 3_440},
        kind=RecoveryKind.HOME,
    )
    counted.metrics.recovered(stated)
    counted.metrics.recovered(replace(stated, cause="finished", kind=None, spent_ms={}))
    samples = counted.samples()
    assert samples["homeport_recovery_seconds_count killed"] == 1
    assert samples["homeport_recovery_seconds_sum killed"] == 3.5
    assert samples["homeport_recovery_seconds_bucket killed 2.0"] == 0
    assert samples["homeport_recovery_seconds_bucket killed 5.0"] == 1
    assert samples["homeport_recovery_seconds_bucket killed +Inf"] == 1
    assert samples["homeport_recovery_seconds_count finished"] == 1
    phase = "homeport_recovery_phase_seconds"
    assert samples[f"{phase}_sum home restore"] == 3.44
    assert samples[f"{phase}_bucket home 0.05 detect"] == 0
    assert samples[f"{phase}_bucket home 0.1 detect"] == 1
    assert f"{phase}_count home fence" not in samples


def _warm(uuid: str, processor: str = "0", to: str = "c") -> PlacementRequested:
    return PlacementRequested(replace(wants(processor, to, uuid).request, is_warm=True))


def _worked_again(epoch: int, ms: int) -> Recovery:
    return Recovery(ProcessorId("0"), "ordered", Host("a"), 1_000, 0, None, 1_000 + ms, epoch=epoch)


def test_warm_moves_by_their_answers(counted: Counted) -> None:
    """Each final answer once; the pause is the recovery of what was moved."""
    counted.deploy()
    counted.feed(_warm("u1"), allocated(3), check_in("r2", "c", request=3))
    counted.metrics.recovered(_worked_again(1, 9_000))
    standby = Incarnation(temporary_id(ProcessorId("0")), 1)
    counted.feed(ContainerStarted(standby), LagsReported({standby.processor_id: 0}))
    counted.feed(ContainerStopped(standby, StopCause.ORDERED, 143))
    counted.feed(stopped("0", 1, StopCause.ORDERED, 143), check_in("r2", "c"), started("0", 2))
    counted.metrics.recovered(_worked_again(2, 1_400))
    counted.feed(_warm("u2", "9"), _warm("u3", to="a"), expired(4))
    counted.metrics.recovered(_worked_again(2, 7_000))
    samples = counted.samples()
    pause = "homeport_warm_move_pause_seconds"
    assert {o: samples[f"homeport_warm_moves_total {o}"] for o in OUTCOMES} == dict(
        zip(OUTCOMES, (1, 1, 1), strict=True)
    )
    assert (samples[f"{pause}_count"], samples[f"{pause}_sum"]) == (1, 1.4)
    assert (samples[f"{pause}_bucket 1.0"], samples[f"{pause}_bucket 2.0"]) == (0, 1)


def test_every_decision_is_counted_by_its_kind(counted: Counted) -> None:
    """All kinds, so that a rate can be taken of any."""
    counted.deploy()
    samples = counted.samples()
    assert samples["homeport_decisions_total permitted"] == 2
    assert samples["homeport_decisions_total given-up"] == 0
