"""The driver on an event loop, with everything around it in this process."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from driver_attempts import FIRST, NM1, P0, Am, Given, driven

from homeport.appmaster.allocation.job_state.state import JobPhase
from homeport.appmaster.allocation.protocol.events import ShutdownRequested
from homeport.appmaster.allocation.protocol.instructions import EndJob, JobResult
from homeport.appmaster.job_model.takeover import OutrankedError
from homeport.config.errors import FencedError, UnavailableError, WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.http.messages import OrderKind, Started, Stopped
from homeport.job_coordinator.metadata.epochs import AmEpoch, EpochManager, Rank
from homeport.job_coordinator.metadata.lifecycle import (
    JobEnd,
    JobEndManager,
    RetryManager,
    StopManager,
)
from homeport.job_coordinator.model.ids import ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.status.shape import ShownChange, SpareReport

SECOND = Incarnation(P0, 2)
EARLIER = "what an earlier driver said"


@driven()
async def test_a_life_in_order(am: Am) -> None:
    """Asked for at home, permitted after its record is written, stopped with evidence, ended."""
    await am.until(lambda: bool(am.cluster.asked))
    _, host, environment = am.cluster.asked[0]
    assert host == NM1
    assert environment == {
        "KEY": "value",
        "SAMZA_COORDINATOR_URL": "http://am/",
        "HOMEPORT_REQUEST_ID": "1",
    }
    order = await am.until_order(OrderKind.RUN)
    am.stream.catch_up()
    assert EpochManager(am.stream).read_processor_epochs()[P0].epoch == 1
    assert (order.incarnation, order.model_version) == (FIRST, 1)
    assert (await am.check_in()).kind is OrderKind.RUN
    assert (await am.check_in(FIRST)).kind is OrderKind.WAIT
    await am.backend.started(Started(FIRST))
    assert am.status()["job"]["state"] == "running"
    assert am.backend.is_running(ResourceId("container_1_0001_01_000002"))
    await am.backend.shutdown()
    await am.stops()
    end = await am.ended()
    assert end.result is JobResult.KILLED
    assert am.cluster.finished == (JobResult.KILLED, "shut down on request")
    assert am.events() == [
        "hold-back-over",
        "permit-granted",
        "started",
        "job-ending",
        "stop-ordered",
    ]
    am.stream.catch_up()
    assert StopManager(am.stream).read() == {FIRST: "stopped"}
    assert JobEndManager(am.stream).read(1) == JobEnd(1, "KILLED", "shut down on request")


@driven()
async def test_launchers_go_on_while_records_cannot_be_written(am: Am) -> None:
    """No permit before its record; meanwhile the order is ``wait``: no launcher gives the AM up."""
    await am.until(lambda: bool(am.cluster.asked))
    am.stream.fault = UnavailableError("Kafka is away")
    assert (await am.check_in()).kind is OrderKind.WAIT
    assert am.status()["coordinator_stream"] == "Kafka is away"
    am.stream.fault = None
    await am.until_order(OrderKind.RUN)
    await am.finished()
    end = await am.ended()
    assert end.result is JobResult.SUCCEEDED
    assert am.cluster.finished is not None


@driven(Given(retries=1))
async def test_a_report_that_is_made_again_is_one_failure(am: Am) -> None:
    """While records cannot be written the launcher reports it again, and the status has none."""
    await am.started()
    am.stream.fault = UnavailableError("Kafka is away")
    report = Stopped(FIRST, StopCause.FAILED, 1, ("what went wrong",))
    reports = [am.backend.stopped(report) for _ in range(24)]
    answers = await asyncio.gather(*reports, return_exceptions=True)
    assert {type(answer) for answer in answers} == {UnavailableError}
    assert am.status()["failures"] == []
    am.stream.fault = None
    await am.backend.stopped(report)
    (failure,) = am.status()["failures"]
    assert failure["last_lines"] == ["what went wrong"]
    am.driver.post(ShutdownRequested())


@driven()
async def test_damaged_records_are_counted_on_the_status(am: Am) -> None:
    """Another writer's garbage is skipped, and the job goes on."""
    await am.until_order(OrderKind.RUN)
    assert am.status()["coordinator_stream_damaged"] == 0
    am.stream.log += [(b"no list", b"{}"), (b'[1,"set-config","a"]', b"not json")]
    await am.until(lambda: am.status()["coordinator_stream_damaged"] == 2)
    assert am.status()["coordinator_stream"] == "ok"
    await am.finished()
    end = await am.ended()
    assert end.result is JobResult.SUCCEEDED


@driven()
async def test_a_failed_job_ends_with_its_story(am: Am) -> None:
    """YARN receives processor, cause and place of its log, but none of the log's lines."""
    await am.started()
    await am.backend.stopped(Stopped(FIRST, StopCause.FAILED, 1, ("Traceback", "KeyError: 7")))
    end = await am.ended()
    assert end.result is JobResult.FAILED
    am.stream.catch_up()
    assert RetryManager(am.stream).read()[P0].count == 1
    assert RetryManager(am.stream).reasons() == {FIRST: "KeyError: 7"}
    assert am.cluster.finished is not None
    diagnostics = am.cluster.finished[1]
    assert "0@1 on nm1: failed, exit code 1; the log of 0@1 is container-0-1.log of " in diagnostics
    assert "KeyError" not in diagnostics


@driven()
async def test_launchers_of_others_are_sent_away(am: Am) -> None:
    """Those of another attempt, or without a request; an unknown processor is refused."""
    await am.started()
    assert (await am.check_in(attempt=2)).kind is OrderKind.EXIT
    assert (await am.check_in(request_id=7)).kind is OrderKind.EXIT
    with pytest.raises(WireError):
        await am.backend.started(Started(Incarnation(ProcessorId("9"), 1)))
    await am.finished()


@driven(fails=FencedError)
async def test_an_attempt_that_is_fenced_ends(am: Am) -> None:
    """A newer attempt has taken over: this one gives no permit and ends with the reason."""
    await am.until(lambda: bool(am.cluster.asked))
    am.stream.fault = FencedError("taken over")
    assert (await am.check_in()).kind is OrderKind.WAIT


@driven()
async def test_no_launcher_gets_a_permit_before_the_keeper_knows(am: Am) -> None:
    """The record is written, the keeper is away: ``wait``; then ``run``, with the keeper's URL."""
    await am.until(lambda: bool(am.cluster.asked))
    am.keeper.is_away = True
    assert (await am.check_in()).kind is OrderKind.WAIT
    am.stream.catch_up()
    assert EpochManager(am.stream).read_processor_epochs()[P0].epoch == 1
    am.keeper.is_away = False
    order = await am.until_order(OrderKind.RUN)
    assert order.lease_url == "http://keeper/"
    assert am.keeper.registered == {FIRST}
    await am.finished()


@driven()
async def test_the_status_names_partners_that_do_not_answer(am: Am) -> None:
    """With the reason, and as long as that lasts; what runs is not touched."""

    def unanswered(am: Am) -> dict[str, str]:
        found: dict[str, str] = am.status()["unanswered"]
        return found

    await am.started()
    assert unanswered(am) == {}
    am.keeper.is_away, am.cluster.fault = True, UnavailableError("no answer in 10 s")
    silent = {"the ResourceManager", "Skein", "the lease keeper"}
    await am.until(lambda: unanswered(am).keys() == silent)
    assert unanswered(am)["Skein"] == "no answer in 10 s"
    assert (await am.check_in(FIRST)).kind is OrderKind.WAIT
    am.keeper.is_away, am.cluster.fault = False, None
    await am.until(lambda: unanswered(am) == {})
    await am.finished()


def stated(am: Am) -> tuple[dict[str, int], list[str]]:
    """The status: the epoch of each container, and the containers not accounted for."""
    status = am.status()
    return {c["processor_id"]: c["epoch"] for c in status["containers"]}, status["unaccounted"]


@driven(Given(permitted=(FIRST,)))
async def test_a_new_driver_adopts_what_runs_and_waits_for_the_rest(am: Am) -> None:
    """The driver requests nothing before it finds the incarnation running, nor afterwards."""
    am.cluster.asked.append((RequestId(1), NM1, {}))
    assert stated(am) == ({P0: 1}, ["0@1"])
    assert (await am.check_in()).kind is OrderKind.WAIT
    assert stated(am) == ({P0: 1}, ["0@1"])
    await am.until(lambda: am.driver.leases.url is not None)
    assert (await am.check_in(FIRST)).kind is OrderKind.WAIT
    assert am.driver.adoption.is_complete
    assert stated(am) == ({P0: 1}, [])
    assert am.status()["job"]["state"] == "running"
    await am.rounds()
    assert len(am.cluster.asked) == 1
    await am.finished()
    end = await am.ended()
    assert end.result is JobResult.SUCCEEDED


@driven(Given(inherited=(SECOND,)))
async def test_a_new_attempt_places_nothing_before_there_is_evidence_of_a_stop(am: Am) -> None:
    """What a lower rank permitted may run; a record of another epoch says nothing of it."""
    StopManager(am.stream).write(FIRST, "signalled")
    await am.rounds()
    assert am.cluster.asked == []
    assert stated(am) == ({P0: 2}, ["0@2"])
    assert am.status()["job"]["held_back"] is None
    StopManager(am.stream).write(SECOND, "signalled")
    order = await am.permitted()
    assert order.incarnation == Incarnation(P0, 3)
    assert am.status()["job"]["held_back"]["unheard"] == []
    await am.finished(Incarnation(P0, 3))
    await am.ended()
    assert am.events()[:2] == ["accounted-for", "hold-back-over"]


@driven(Given(inherited=(FIRST,)))
async def test_a_launcher_of_another_attempt_must_exit_and_its_report_counts(am: Am) -> None:
    """Its order is ``exit``, child or not. Its report of a stop ends the driver's wait."""
    assert (await am.check_in(FIRST, attempt=2)).kind is OrderKind.EXIT
    assert (await am.check_in(attempt=2)).kind is OrderKind.EXIT
    assert am.cluster.asked == []
    await am.backend.stopped(Stopped(FIRST, StopCause.ORDERED, 143))
    await am.permitted()
    await am.finished(Incarnation(P0, 2))


@driven(fails=OutrankedError)
async def test_a_higher_rank_ends_a_driver_that_writes_nothing(am: Am) -> None:
    """It sees the rank in the stream, which it reads all the time (safety A2)."""
    await am.started()
    higher = Rank(1, "application_1_0001", 2)
    EpochManager(am.stream).write_am_epoch(AmEpoch(higher))


@driven(Given(permitted=(FIRST,), ending=ShutdownRequested("FAILED", EARLIER)))
async def test_an_end_under_way_goes_on_when_it_is_known_what_runs(am: Am) -> None:
    """Nothing is stopped, and nothing ends, before what was permitted is found."""
    am.cluster.asked.append((RequestId(1), NM1, {}))
    await am.rounds()
    assert am.driver.state.phase is not JobPhase.ENDED
    await am.stops()
    assert await am.ended() == EndJob(JobResult.FAILED, EARLIER)


def write_key(am: Am, key: str, value: str) -> None:
    """As the writer tool does."""
    am.stream.write([wire.set_config(key, value)])


@driven()
async def test_a_key_of_the_stream_changes_the_running_job(am: Am) -> None:
    """Two containers for one: its tasks are divided again, both run the version.

    The loser works on until the gainer has a launcher with a process that is ready. The gainer is
    permitted when the loser has stopped.
    """
    await am.started()
    write_key(am, "job.container.count", "2")
    await am.until(lambda: len(am.containers()) == 2)
    assert am.backend.job_model(1) is not am.backend.job_model(None)
    change = am.backend.status().change
    assert change is not None, "a version that is served is shown until all have it"
    assert change.to_version == 2
    stops = ShownChange(to_version=2, must_stop=("0@1",), waits={ProcessorId("1"): ("0@1",)})
    await am.until(lambda: am.backend.status().change == stops)
    await am.until(lambda: len(am.cluster.asked) == 2)
    order = await am.check_in(request_id=2)
    assert (order.kind, order.prepare) == (OrderKind.WAIT, "plain")
    await am.check_in(request_id=2, spare=SpareReport("plain", is_ready=True))
    await am.stops()
    orders = [await am.until_order(OrderKind.RUN, request_id=n) for n in (1, 2)]
    assert {o.model_version for o in orders} == {2}
    assert {o.incarnation for o in orders} == {Incarnation(P0, 3), Incarnation(ProcessorId("1"), 1)}
    assert all(FIRST in o.fence for o in orders)
    assert am.status()["change"] is None
    await am.backend.shutdown()
    for order, request_id in zip(orders, (1, 2), strict=True):
        assert order.incarnation is not None
        await am.stops(order.incarnation, request_id)
    await am.until_order(OrderKind.EXIT, request_id=2)
    end = await am.ended()
    assert end.result is JobResult.KILLED
    assert am.events().index("model-change") < am.events().index("stop-ordered")


@driven()
async def test_a_retired_processor_is_heard_until_it_has_stopped(am: Am) -> None:
    """What it still reports is no message of a stranger's."""
    await am.started()
    am.job_models.enter(2, replace(am.job_models.model, containers={}))
    am.job_models.remember([ProcessorId("8")])
    await am.backend.stopped(Stopped(Incarnation(ProcessorId("8"), 1), StopCause.ORDERED, 143))
    with pytest.raises(WireError):
        await am.backend.stopped(Stopped(Incarnation(ProcessorId("9"), 1), StopCause.ORDERED, 143))
    await am.backend.shutdown()
    await am.stops()


@driven()
async def test_a_model_is_published_when_kafka_is_back(am: Am) -> None:
    """While it is away the AM serves what is in force, says so, and goes on with the change."""
    await am.started()
    write_key(am, "cluster-manager.container.retry.count", "3")
    am.stream.fault = UnavailableError("Kafka is away")
    await am.until(lambda: am.status()["coordinator_stream"] == "Kafka is away")
    assert am.job_models.version == 1
    am.stream.fault = None
    await am.until(lambda: am.job_models.version == 2)
    await am.until(lambda: am.status()["coordinator_stream"] == "ok")
    await am.until(lambda: am.driver.state.settings.retry_count == 3)
    await am.backend.shutdown()
    await am.stops()


@driven()
async def test_a_model_that_kafka_does_not_accept_ends_no_container(am: Am) -> None:
    """The model in force stays and the status says why, until the stream is sound."""
    await am.started()
    write_key(am, "job.container.count", "2")
    am.stream.fault = WireError("a record is too large")
    await am.until(lambda: am.status()["configuration"]["fault"] == "a record is too large")
    assert am.job_models.version == 1
    am.stream.fault = None
    write_key(am, "job.container.count", "1")
    await am.until(lambda: am.status()["configuration"]["fault"] is None)
    assert am.driver.view.runs(FIRST)
    await am.backend.shutdown()
    await am.stops()
