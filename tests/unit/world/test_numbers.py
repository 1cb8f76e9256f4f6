"""Records whose numbers are beyond all bounds: no driver dies of one, and none becomes deaf."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_records import records
from suites import long

from homeport.job_coordinator.coordinator_stream.message import MessageType, Namespace
from tests.unit.world.am import Attempt
from tests.unit.world.kafka import Writer
from tests.unit.world.scene import Scene
from tests.unit.world.world import COORDINATOR, World

CATCH_UP = "job.coordinator.catch-up.interval.ms"
BEYOND = 10**400


def place(scene: Scene, attempt: Attempt, **fields: object) -> None:
    """A foreign tool asks for processor 0 elsewhere; ``fields`` of its request are these."""
    body = {
        "processorId": "0",
        "deploymentId": attempt.rank.application,
        "subType": "ContainerPlacementRequestMessage",
        "uuid": "u",
        "destinationHost": "ANY_HOST",
        "statusCode": "CREATED",
        "timestamp": 1,
        **fields,
    }
    key = json.dumps(["1", "samza-place-container-v1", f"{body['uuid']}.{body['subType']}"])
    value = json.dumps(body).encode()
    scene.world.broker.append((COORDINATOR, 0), Writer(None), key.encode(), value, 0)


def answers(scene: Scene) -> dict[str, dict[str, object]]:
    """{key: the last answer to a placement request}; of requests that wait nothing."""
    found = {}
    for record in scene.world.broker.partition((COORDINATOR, 0)).committed(0, 10**6):
        if record.key and b"Response" in record.key and record.value is not None:
            found[json.loads(record.key)[2]] = json.loads(record.value)
    return found


@pytest.mark.parametrize(
    "fields",
    [
        {"requestExpiry": BEYOND},
        {"requestExpiry": 2**63 - 1},
        {"requestExpiry": -BEYOND},
        {"timestamp": BEYOND, "requestExpiry": 0},
        {"deploymentId": "x" * 600_000},
        {"processorId": "0" * 600_000},
        {"destinationHost": "x" * 600_000},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_placement_request_beyond_all_bounds_is_refused(
    scene: Scene, fields: dict[str, object]
) -> None:
    """It has one answer, BAD_REQUEST; the driver that reads it lives, and works on."""
    attempt = scene.working()
    driver = attempt.driver
    place(scene, attempt, **fields)
    scene.until(lambda: bool(answers(scene)), "there is an answer")
    scene.run(3000)
    (answer,) = answers(scene).values()
    assert answer["statusCode"] == "BAD_REQUEST"
    assert len(json.dumps(answer)) < 10_000
    assert attempt.driver is driver
    scene.work(2)


def test_a_request_with_a_key_too_long_for_an_answer_is_dropped(scene: Scene) -> None:
    """Its uuid is all of a record: no answer could be found under it."""
    attempt = scene.working()
    driver = attempt.driver
    place(scene, attempt, uuid="x" * 400_000)
    scene.run(5000)
    place(scene, attempt, uuid="v", destinationHost="nowhere")
    scene.until(lambda: bool(answers(scene)), "the request after it has an answer")
    assert attempt.driver is driver
    scene.work(2)


def test_an_action_with_a_number_beyond_all_bounds_is_ended(scene: Scene) -> None:
    """Its IN_PROGRESS is in the stream: the next driver answers FAILED, and goes on."""
    attempt = scene.working()
    kind = "ContainerPlacementResponseMessage"
    begun = {
        "subType": kind,
        "statusCode": "IN_PROGRESS",
        "responseMessage": "a launcher is being reserved",
        "homeport": {"requested": 1, "epoch": 1, "host": "a"},
        "requestExpiry": BEYOND,
    }
    place(scene, attempt, **begun)
    attempt.driver.kill()
    scene.until(
        lambda: [a["statusCode"] for a in answers(scene).values()] == ["FAILED"],
        "the action has failed",
    )
    driver = attempt.driver
    scene.work(2)
    assert attempt.driver is driver


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1" + "0" * 5000, "3600000"])
def test_a_driver_hears_the_correction_of_its_own_interval(scene: Scene, value: str) -> None:
    """The value is not applied, and said; the one that follows is, at once."""
    attempt = scene.working()
    driver = attempt.driver
    scene.configure(CATCH_UP, value)
    scene.until(lambda: bool(attempt.status()["configuration"]["fault"]), "the fault is said")
    assert f"{CATCH_UP} = " in attempt.status()["configuration"]["fault"]
    scene.configure(CATCH_UP, "500")
    scene.until(lambda: not attempt.status()["configuration"]["fault"], "it is mended")
    assert attempt.driver is driver
    scene.work(2)


def test_a_driver_begins_with_what_was_submitted_where_the_stream_is_beyond_all_bounds(
    scene: Scene,
) -> None:
    """The value is there before the driver: it is not applied, and said."""
    scene.working()
    scene.configure(CATCH_UP, "1" + "0" * 400)
    scene.run(3000)
    second = scene.attempt(attempt=2, host="am2")
    scene.until_started("0@2")
    scene.until(lambda: bool(second.status()["configuration"]["fault"]), "the fault is said")
    scene.work(2)


_AS_TODAY = frozenset(
    {
        MessageType.SET_AM_EPOCH,
        MessageType.SET_PROCESSOR_EPOCH,
        MessageType.SET_EPOCH_FLOOR,
        MessageType.SET_SUBMISSION,
        MessageType.SET_JOB_MODEL_VERSION,
        MessageType.SET_STATE_RESET,
        MessageType.SET_CHANGELOG,
    }
)
"""A driver goes on with none of these where it is damaged: that could be unsafe."""
_OTHERS = (*(t for t in MessageType if t not in _AS_TODAY), *Namespace)


@pytest.mark.search
@pytest.mark.parametrize("examples", [12, long(60)])
def test_the_driver_survives_any_record_of_the_stream(examples: int) -> None:
    """It reads the records as they come, and the next driver finds them at its start.

    Only a record that says so, rightly formed, ends the job.
    """
    limited = settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    limited(given(st.lists(records(_OTHERS), min_size=1, max_size=8))(survives))()


def survives(written: list[tuple[bytes, bytes | None]]) -> None:
    """The records are in the stream while a driver reads it, and when the next one starts."""
    with World() as world:
        scene = Scene(world)
        attempt = scene.working()
        driver_of = attempt.children[1]
        driver = attempt.driver

        def is_over() -> bool:
            return scene.has_fact("driver:job-ending")

        for key, value in written:
            world.broker.append((COORDINATOR, 0), Writer(None), key, value, 0)
        scene.run(3000)
        assert is_over() or (attempt.driver is driver and driver.is_alive)
        driver.kill()
        scene.until(
            lambda: is_over() or (driver_of.starts > 1 and bool(attempt.locality())),
            "the next driver has begun",
        )
        starts = driver_of.starts
        scene.run(3000)
        assert is_over() or (driver_of.starts == starts and attempt.driver.is_alive)
