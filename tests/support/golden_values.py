"""Values of the golden bodies: each field has another value than its default."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.job_coordinator.http.messages import CheckIn
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind
from homeport.job_coordinator.model.placement import PlacementRequest
from homeport.job_coordinator.standalone.plan import Member, Plan
from homeport.job_coordinator.status.container_report import (
    AdjunctState,
    ContainerReport,
    DroppedValues,
    RestoreProgress,
    StageTime,
    StoreLag,
)
from homeport.job_coordinator.status.figures import Sample
from homeport.job_coordinator.status.own_metrics import OwnMetric
from homeport.job_coordinator.status.shape import (
    HeldBack,
    Needs,
    Phase,
    ShownChange,
    ShownConfiguration,
    ShownContainer,
    ShownFailover,
    ShownFailure,
    ShownJob,
    ShownKey,
    ShownPlacement,
    ShownRecovery,
    ShownRollout,
    ShownShortage,
    ShownStandby,
    ShownStatus,
    ShownTakenOver,
    ShownWaiter,
    SpareReport,
)

P0, P1 = ProcessorId("0"), ProcessorId("1-é")
ZERO, ONE = Incarnation(P0, 3), Incarnation(P1, 10**18 - 1)
PACKAGE, OTHER = "ab" * 32, "cd" * 32
APPLICATION = "application_1700000000000_0001"
REPORT = ContainerReport(
    restoring=(RestoreProgress("s", TaskName("Partition 0"), 5, 640, 7, 2.5, 2.8, 3),),
    lags=(StoreLag("s", TaskName("Partition 1"), 9, 0.5),),
    lag=9,
    lag_seconds=0.5,
    first_commit_ms=1200,
    caught_up_ms=900,
    dropped=(DroppedValues("s", TaskName("Partition 0"), 2),),
    processed=70,
    input_lag=11,
    stages=(StageTime("fetch", 30, 4, (1, 0, 3)),),
    input_lost=1,
    adjuncts=(
        AdjunctState(
            store="a",
            task=TaskName("Partition 0"),
            input="kafka.a",
            kind="partitioned",
            records=8,
            bytes=900,
            positions={"0": 8},
            lag=1,
            remaining=2,
            seconds_left=0.25,
            age_seconds=3.5,
            version=4,
            late=1,
            awaits="a first version",
        ),
    ),
    figures=(Sample("task_rows", ("Partition 0",), 70.0), Sample("rocksdb_cache_bytes", (), 512.0)),
    own=(
        OwnMetric("orders", "counter", (("country", "de"),), 3.0),
        OwnMetric("amount", "histogram", (), 12.5, (1.0, 5.0), (1, 0, 2)),
    ),
)
CHECK_IN = CheckIn(
    resource_id=ResourceId("container_1700000000000_0001_01_000002"),
    skein_id="any_0",
    attempt=1,
    host=Host("h1"),
    pid=77,
    running=ONE,
    report=REPORT,
    spare=SpareReport("warm", is_ready=True),
    package=PACKAGE,
    prepared=OTHER,
    unprepared="No space left on device",
    quiet_ms=12,
    python="/opt/homeport/bin/python",
    version="0.2.0",
)
TAIL = Restored(RestoreKind.TAIL, 5, 9, 5)
REFUSED = Restored(RestoreKind.FULL, None, None, 10, "it was stale", "stale", 7)
MODEL = JobModel(
    Config({}),
    {
        P0: ContainerModel(
            P0,
            {
                TaskName("Partition 0"): TaskModel(
                    TaskName("Partition 0"), (SystemStreamPartition("kafka", "in", 0),), 0
                )
            },
        )
    },
)
PLAN = Plan(
    7,
    (Member(P0, 12, 5, (TaskName("Partition 0"),), (ZERO,), ()),),
    lost=1,
    unbacked=2,
    former=(ONE,),
)
REQUEST = PlacementRequest("u1", APPLICATION, P0, "h2", 60_000, 1_700_000_000_000, is_warm=True)


STATUS = ShownStatus(
    job=ShownJob(
        name="flights",
        id="1",
        application=APPLICATION,
        attempt=2,
        host="nm1",
        attempts_max=10,
        rank=(2, APPLICATION, 2),
        state="running",
        health="recovering",
        model_version=7,
        held_back=HeldBack(ms=12, unheard=("0@3",)),
        coordinator="zookeeper",
        leader="1-é",
        python="/opt/homeport/bin/python",
        version="0.2.0",
    ),
    coordinator_url="http://nm1:1/",
    application_url="http://rm:8088/proxy/1/",
    containers=(
        ShownContainer(
            processor_id=P1,
            phase=Phase.STARTING,
            role="standby",
            replica_of=P0,
            is_temporary=True,
            lag=9,
            lag_seconds=0.5,
            report=REPORT,
            host=Host("h1"),
            last_host=Host("h2"),
            requested_host=Host("h3"),
            since_ms=1_700_000_000_000,
            epoch=4,
            model_version=7,
            pid=77,
            package=PACKAGE,
            python="/opt/homeport/bin/python",
            version="0.2.0",
            resource="container_1700000000000_0001_01_000002",
            spare=SpareReport("warm", is_ready=True),
            restored={"s": {"Partition 0": TAIL}},
            seconds={"restore": 0.25},
            restarts=3,
            failures=2,
            last_failure="it failed",
            recovery=ShownRecovery(
                cause="failed",
                kind="home",
                from_host="h2",
                to_host="h1",
                began_ms=1_700_000_000_000,
                phases_ms={"restore": 40},
                total_ms=50,
                is_over=False,
            ),
            log_url="http://h1:8042/log",
            location=Host("h1"),
            is_leader=True,
            registration=12,
            standbys=(
                ShownStandby(
                    name="Standby-a-0", task="a", lag=1, lag_seconds=0.5, is_caught_up=False
                ),
            ),
            waits=("for tasks",),
        ),
    ),
    hosts=("h1",),
    excluded_hosts=("h2",),
    drained_hosts=("h3",),
    suspects_itself=True,
    stores_refused={"stale": 2},
    failures=(
        ShownFailure(
            cause="failed",
            processor_id=P0,
            epoch=3,
            exit_code=1,
            host="h1",
            at_ms=1_700_000_000_000,
            log="container-0-3.log of container_1",
            last_lines=("ValueError: ä",),
        ),
    ),
    coordinator_stream="ok",
    coordinator_stream_age_ms=5,
    coordinator_stream_damaged=1,
    change=ShownChange(
        to_version=8,
        must_stop=("0@3",),
        waits={P1: ("0@3",)},
        version=8,
        barrier="NEW",
        missing=("0",),
    ),
    failovers=(
        ShownFailover(
            active=P0,
            phase=Phase.FAILING_OVER,
            step="standby",
            standby=P1,
            host="h1",
            used=(P1,),
            waits_for="1-é@4",
        ),
    ),
    placements=(
        ShownPlacement(
            processor_id=P0,
            destination="h2",
            step="reserving",
            uuid="u1",
            host="h2",
            is_warm=True,
            standby=P1,
            waits="for the launcher",
        ),
    ),
    unaccounted=("0@2",),
    unanswered={"Skein": "no answer"},
    waiting=ShownShortage(
        says="waiting for 1 container",
        needs=Needs(memory_mb=512, cores=1),
        count=1,
        processors=(
            ShownWaiter(
                processor_id=P0, since_ms=5, asks=Host("h2"), obstacles={Host("h2"): "is lost"}
            ),
        ),
        hosts={Host("h2"): "is lost"},
        hosts_count=1,
    ),
    configuration=ShownConfiguration(
        version=7,
        pending=(ShownKey(key="task.opts", in_force="a", wanted="b", takes="restart"),),
        fault="it is refused",
        inputs_begun_anew=["kafka.in"],
        topics_refused=("kafka.odd matches",),
        reads_ahead={TaskName("Partition 1"): 9, TaskName("Partition 2"): None},
    ),
    upgrade=ShownRollout(
        phase="forward",
        id="u1",
        package=PACKAGE,
        previous=OTHER,
        watch_ms=5000,
        given=(P0,),
        current=P1,
        waits="for its standby",
        reason="it failed",
    ),
    rolling_restart=ShownRollout(phase="done"),
    taken_over=ShownTakenOver(lost=1, unbacked=2, version=3),
)
