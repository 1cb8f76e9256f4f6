"""What launcher, container and AM say to each other."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.errors import WireError
from homeport.job_coordinator.http.messages import CheckIn, Order, OrderKind, Started, Stopped
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind, StopCause
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.shape import SpareReport

ONE = Incarnation(ProcessorId("1"), 4)
PACKAGE, OTHER = "ab" * 32, "cd" * 32
CHECK_IN = CheckIn(ResourceId("container_1_0001_01_000002"), "any_0", 1, Host("h1"), 77, ONE)
ORDER = Order(OrderKind.RUN, 500, 0, ONE, 2, (Incarnation(ProcessorId("0"), 3),))
STARTED = Started(
    ONE,
    {"s": {"Partition 0": Restored(RestoreKind.TAIL, 5, 9, 5)}, "t": {}},
    {"restore": 0.25, "spark": 3.0},
)
STOPPED = Stopped(ONE, StopCause.FAILED, 1, ("Traceback", "ValueError: ä"), 70)

_FROM_JSON: list[tuple[Any, Callable[[Any], object]]] = [
    (CHECK_IN, CheckIn.from_json),
    (replace(CHECK_IN, report=ContainerReport(lag=0)), CheckIn.from_json),
    (replace(CHECK_IN, spare=SpareReport("warm", is_ready=True)), CheckIn.from_json),
    (replace(CHECK_IN, package=PACKAGE, prepared=OTHER), CheckIn.from_json),
    (replace(CHECK_IN, prepared=OTHER), CheckIn.from_json),
    (replace(CHECK_IN, unprepared="No space left on device", quiet_ms=0), CheckIn.from_json),
    (ORDER, Order.from_json),
    (replace(ORDER, package=PACKAGE), Order.from_json),
    (Order(OrderKind.WAIT, 500, 0, model_version=2, package=PACKAGE), Order.from_json),
    (Order(OrderKind.STOP, 500, 0, ONE, is_replaced=True), Order.from_json),
    (STARTED, Started.from_json),
    (Started(ONE), Started.from_json),
    (STOPPED, Stopped.from_json),
    *((Stopped(ONE, cause, 143), Stopped.from_json) for cause in StopCause),
]


@pytest.mark.parametrize(("message", "from_json"), _FROM_JSON)
def test_every_message_survives_the_wire(message: Any, from_json: Callable[[Any], object]) -> None:  # noqa: ANN401 - five types
    """Written as JSON and read again, each message is the same."""
    assert from_json(json.loads(json.dumps(message.to_json()))) == message


@pytest.mark.parametrize(
    ("cause", "lines", "reason"),
    [
        (StopCause.FAILED, ("Traceback", "error: task\t'a'  failed"), "task 'a' failed"),
        (StopCause.FAILED, ("error: KeyError: password=hunter2",), "KeyError: password=********"),
        (StopCause.FAILED, ("x" * 297 + " token=hunter2",), "x" * 297 + " to"),
        (StopCause.DISK_FULL, ("error: /state has no room",), "/state has no room"),
        (StopCause.FAILED, (), ""),
        (StopCause.KILLED, ("processed 7 records",), ""),
    ],
)
def test_a_stop_has_a_reason_in_one_short_line(
    cause: StopCause, lines: tuple[str, ...], reason: str
) -> None:
    """The last line of a process that ended by a fault, without secrets; none of a killed one."""
    assert Stopped(ONE, cause, 1, lines).reason == reason


@pytest.mark.parametrize("value", ["../../elsewhere", PACKAGE.upper(), PACKAGE[1:], 7])
def test_a_package_is_refused_that_no_sha256_names(value: object) -> None:
    """It would name a folder."""
    for name in ("package", "prepared"):
        with pytest.raises(WireError, match=name):
            CheckIn.from_json(CHECK_IN.to_json() | {name: value})
    with pytest.raises(WireError, match="package"):
        Order.from_json(ORDER.to_json() | {"package": value})


def test_a_long_report_of_a_start_has_the_sums_of_each_store() -> None:
    """One entry for the tasks of one kind and refusal; a report that is short enough stays."""
    anew = [Restored(RestoreKind.FULL, 0, 9, n, f"{n}: recreated", "another-topic") for n in (1, 2)]
    tail = Restored(RestoreKind.TAIL, 5, 9, 5)
    report = replace(STARTED, restored={"s": {"a": tail, "b": anew[0], "c": anew[1]}, "t": {}})
    size = len(compact_json(report.to_json()))
    assert report.within(size) == report
    short = report.within(size - 1)
    assert short.restored == {
        "s": {
            "1 tasks, tail": Restored(RestoreKind.TAIL, None, None, 5),
            "2 tasks, full, another-topic": Restored(
                RestoreKind.FULL, None, None, 3, "1: recreated", "another-topic", tasks=2
            ),
        },
        "t": {},
    }
    assert (short.incarnation, short.seconds) == (report.incarnation, report.seconds)


def test_a_host_is_read_in_its_one_spelling() -> None:
    """Case and white space of a reported host do not count."""
    assert CheckIn.from_json(CHECK_IN.to_json() | {"host": " H1 "}).host == "h1"


@pytest.mark.parametrize(
    ("from_json", "good", "path", "value"),
    [
        (CheckIn.from_json, CHECK_IN, ["resource_id"], None),
        (CheckIn.from_json, CHECK_IN, ["host"], 1),
        (CheckIn.from_json, CHECK_IN, ["attempt"], True),
        (CheckIn.from_json, CHECK_IN, ["running"], "1"),
        (CheckIn.from_json, CHECK_IN, ["running", "epoch"], None),
        (CheckIn.from_json, CHECK_IN, ["report"], "7"),
        (CheckIn.from_json, CHECK_IN, ["spare"], {"kind": "warm"}),
        (Order.from_json, ORDER, ["order"], "dance"),
        (Order.from_json, ORDER, ["processor_id"], None),
        (Order.from_json, ORDER, ["model_version"], None),
        (Order.from_json, ORDER, ["fence"], None),
        (Order.from_json, ORDER, ["fence", 0, "epoch"], 1.5),
        (Order.from_json, ORDER, ["next_ms"], None),
        (Started.from_json, STARTED, ["restored", "s"], []),
        (Started.from_json, STARTED, ["restored", "s", "Partition 0"], {}),
        (Started.from_json, STARTED, ["restored", "s", "Partition 0", "kind"], "half"),
        (Started.from_json, STARTED, ["restored", "s", "Partition 0", "from"], "5"),
        (Started.from_json, STARTED, ["restored", "s", "Partition 0", "records"], None),
        (Started.from_json, STARTED, ["seconds", "spark"], "3"),
        (Started.from_json, STARTED, ["seconds", "spark"], float("inf")),
        (Started.from_json, STARTED, ["seconds", "spark"], 10**400),
        (Stopped.from_json, STOPPED, ["cause"], "bored"),
        (Stopped.from_json, STOPPED, ["exit_code"], None),
        (Stopped.from_json, STOPPED, ["last_lines"], "text"),
    ],
)
def test_a_wrong_field_is_refused_in_one_line(
    from_json: Callable[[Any], object],
    good: Any,  # noqa: ANN401 - four types of message
    path: list[Any],
    value: object,
) -> None:
    """Whatever is wrong, at whatever depth, is a WireError of one line."""
    body = copy.deepcopy(good.to_json())
    at = body
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(WireError) as caught:
        from_json(body)
    assert "\n" not in str(caught.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
_BODIES = [m.to_json() for m in (CHECK_IN, ORDER, STARTED, STOPPED)]


@settings(deadline=None)  # the machine may be busy
@given(st.sampled_from(_BODIES), st.data())
def test_no_body_gives_another_error(body: dict[str, Any], data: st.DataObject) -> None:
    """Any field replaced by any JSON: the message is read or refused, nothing else happens."""
    names = st.sampled_from(sorted(body))
    changed = body | data.draw(st.dictionaries(names, _JSON, max_size=2))
    for from_json in (CheckIn.from_json, Order.from_json, Started.from_json, Stopped.from_json):
        try:
            from_json(changed)
        except WireError:
            continue
