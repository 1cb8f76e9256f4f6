"""Whatever is sent to the job coordinator: an answer, or 400 in one line; never 500."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from coordinator_server import CHECK_IN, STARTED, STOPPED, TOKEN, Served
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_bodies import ODD, bodies

from homeport.config.errors import WireError
from homeport.job_coordinator.http.messages import LeaseGrant, Order, OrderKind, Renewal
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.status.container_report import (
    AdjunctState,
    ContainerReport,
    DroppedValues,
    RestoreProgress,
    StageTime,
    StoreLag,
)

_TASK = TaskName("Partition 0")
_REPORT = ContainerReport(
    restoring=(RestoreProgress("s", _TASK, 1, 2, 3, 4.0, 5.0, 1),),
    lags=(StoreLag("s", _TASK, 7, 1.0),),
    lag=7,
    lag_seconds=1.0,
    first_commit_ms=10,
    caught_up_ms=9,
    dropped=(DroppedValues("s", _TASK, 1),),
    processed=5,
    input_lag=3,
    stages=(StageTime("tasks", 7),),
    input_lost=2,
    adjuncts=(
        AdjunctState("a", _TASK, "kafka.a", "broadcast", 3, 4, {"0": 4}, 5, 6, 7.5, 8.5, 9, 1),
    ),
)
RIGHT: dict[str, dict[str, Any]] = {
    "check-in": {
        **CHECK_IN.to_json(),
        "report": _REPORT.to_json(),
        "spare": {"kind": "warm", "ready": True},
    },
    "started": STARTED.to_json(),
    "stopped": STOPPED.to_json(),
}
QUERIES = (
    *("/?version=", "/v1/processors/0/model?version=", "/v1/events?since=", "/v1/events?limit="),
    *("/v1/events?processor=", "/containerHeartbeat?executionContainerId=", "/v1/what-if?host="),
    *("/locality?processorId=", "/v1/processors/"),
)
_SETTINGS = settings(max_examples=300, suppress_health_check=list(HealthCheck))


def _require_no_fault(status: int, content: bytes) -> None:
    assert status < 500 or status == 503
    if status >= 400:
        line = json.loads(content)["error"]
        assert "\n" not in line
        assert len(line) < 1_500


@pytest.mark.search
@pytest.mark.parametrize("route", RIGHT)
@_SETTINGS
@given(data=st.data())
def test_a_message_is_taken_or_refused_in_one_line(
    served: Served, route: str, data: st.DataObject
) -> None:
    """What launchers and containers say, with odd values in it."""
    body = data.draw(bodies(RIGHT[route]))
    authorization = f"Bearer {TOKEN}"
    status, _, content = served.call("POST", f"/v1/{route}", body, Authorization=authorization)
    _require_no_fault(status, content)


@pytest.mark.search
@_SETTINGS
@given(st.sampled_from(QUERIES), st.sampled_from([text[:900] for text in ODD]) | st.text())
def test_a_question_is_answered_or_refused_in_one_line(
    served: Served, path: str, value: str
) -> None:
    """Numbers, names and whatever else stands in an address."""
    status, _, content = served.call("GET", path + quote(value, safe="", errors="replace"))
    _require_no_fault(status, content)


@pytest.mark.parametrize("field", ["epoch", "model_version", "next_ms", "lease_ms"])
@pytest.mark.parametrize("number", [10**400, -1, True, 1.5, float("inf"), float("nan")])
def test_an_order_has_numbers_that_a_launcher_can_wait_by(field: str, number: object) -> None:
    """What an AM says is checked as what it hears."""
    order = Order(OrderKind.RUN, 1, 1, STARTED.incarnation, 1).to_json()
    assert Order.from_json(order).next_ms == 1
    with pytest.raises(WireError, match=rf"an order: .*\$.*\.{field}`"):
        Order.from_json({**order, field: number})


@pytest.mark.parametrize("number", [10**400, -1, True, 2**31])
def test_a_lease_is_of_a_length_that_can_be_counted(number: object) -> None:
    """Of the grant, and the attempt of the requester."""
    with pytest.raises(WireError, match=r"a lease: .*\$\.lease_ms`"):
        LeaseGrant.from_json({"lease": "granted", "lease_ms": number})
    with pytest.raises(WireError, match=r"a renewal: .*\$\.attempt`"):
        Renewal.from_json({"attempt": number, "processor_id": "0", "epoch": 1})
