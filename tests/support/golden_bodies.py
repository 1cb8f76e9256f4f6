"""What two versions of Homeport may exchange: each body as a value, with its writer and reader.

The bytes of each are a file below ``tests/golden``. A body that changes is a change of what the
release before understands: the file shows it in the review.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import own_records
from golden_values import (
    APPLICATION,
    CHECK_IN,
    MODEL,
    ONE,
    OTHER,
    P0,
    P1,
    PACKAGE,
    PLAN,
    REFUSED,
    REQUEST,
    STATUS,
    TAIL,
    ZERO,
)
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.lease.keeper_client import KeeperReport, report_from_json
from homeport.config.system_stream import SystemStream
from homeport.container.host.permit import Permit
from homeport.job_coordinator.access.job_access import ShownAccess
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.http.messages import (
    CheckIn,
    LeaseAnswer,
    LeaseGrant,
    Order,
    OrderKind,
    Renewal,
    Started,
    Stopped,
    Unfit,
)
from homeport.job_coordinator.metadata.configuration import AuditedManager
from homeport.job_coordinator.metadata.epochs import (
    AmEpoch,
    EpochManager,
    FenceReport,
    JobModelVersion,
    ProcessorEpoch,
    Rank,
    Submission,
    epoch_floor_message,
)
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.lifecycle import (
    FailoverManager,
    JobEnd,
    JobEndManager,
    RecordedFailover,
    RetryManager,
    RetryState,
    StopManager,
)
from homeport.job_coordinator.metadata.placement import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from homeport.job_coordinator.metadata.state_conversion import Conversion, ConversionManager
from homeport.job_coordinator.metadata.state_facts import (
    ChangelogPartitionManager,
    Reading,
    StateFactManager,
    StoreForms,
    StoreSchemas,
)
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from homeport.job_coordinator.metadata.task_assignment import UsedHostManager
from homeport.job_coordinator.metadata.topics import (
    ChangelogTopicManager,
    ChangelogTopicRecord,
    CheckpointTopicManager,
    InputPartitionManager,
    InputTopic,
    InputTopicManager,
    OutputTopicManager,
)
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId, TaskName
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import PlacementResponse, PlacementStatus
from homeport.job_coordinator.model.upgrade import UpgradeOrder, UpgradePhase, UpgradeState
from homeport.job_coordinator.model.wire_form import decoded, json_text
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import Registration
from homeport.job_coordinator.status.container_report import ContainerReport


class Body(NamedTuple):
    """One body: what it carries, its bytes, and what its reader makes of bytes.

    ``adds``: whether its reader passes over fields that a later version adds to the object.
    """

    value: Any
    data: bytes
    read: Callable[[bytes], object]
    adds: bool = True


def _http(value: Any, read: Callable[[Mapping[str, Any]], object]) -> Body:  # noqa: ANN401 - any message
    return Body(value, compact_json(value.to_json()), lambda data: read(json.loads(data)))


def _shown(value: Any) -> Body:  # noqa: ANN401 - any value that a server shows
    return Body(value, json_text(value).encode(), lambda data: decoded(type(value), data, "it"))


_KEEPER = {
    "url": "http://h1:1/v1/lease",
    "revoked": [{**ZERO.to_json(), "renewed_ms": 5}, {**ONE.to_json(), "renewed_ms": None}],
    "due_ms": 80,
}
_STORED = nodes.encode_plan(replace(PLAN, model=MODEL), 12)
# size and checksum are of zlib's bytes, which differ from version to version
_HEAD = json.loads(_STORED.value.partition(b"\n")[0]) | {"size": 0, "crc": 0}


def _plan_lines(stored: nodes.StoredPlan) -> bytes:
    """The body and the JobModel of a version; its head has size and checksum of their zlib."""
    return zlib.decompress(stored.value.partition(b"\n")[2]) + b"\n"


def _plan_of(lines: bytes) -> object:
    payload = zlib.compress(lines.removesuffix(b"\n"))
    head = _HEAD | {"size": len(payload), "crc": zlib.crc32(payload)}
    plan = nodes.decode_plan(7, compact_json(head) + b"\n" + payload, ())
    return plan, plan.model


HTTP: Mapping[str, Body] = {
    "status": _shown(STATUS),
    "check-in": _http(CHECK_IN, CheckIn.from_json),
    "check-in-idle": _http(CheckIn(ResourceId("r"), "s", 0, Host("h"), 1, None), CheckIn.from_json),
    "order-run": _http(
        Order(OrderKind.RUN, 500, 0, ONE, 2, (ZERO,), "http://h1:1", package=PACKAGE),
        Order.from_json,
    ),
    "order-wait": _http(Order(OrderKind.WAIT, 500, 9, model_version=2), Order.from_json),
    "order-stop": _http(Order(OrderKind.STOP, 500, 9, ONE, is_replaced=True), Order.from_json),
    "order-exit": _http(Order(OrderKind.EXIT, 0, 0), Order.from_json),
    "started": _http(
        Started(ONE, {"s": {"Partition 0": TAIL, "7 tasks": REFUSED}, "t": {}}, {"restore": 0.25}),
        Started.from_json,
    ),
    "stopped": _http(
        Stopped(ONE, StopCause.FAILED, 1, ("Traceback", "ValueError: ä"), 70), Stopped.from_json
    ),
    "unfit": _http(Unfit("any_0", "no python"), Unfit.from_json),
    "renewal": _http(Renewal(1, ONE), Renewal.from_json),
    "lease": _http(LeaseGrant(LeaseAnswer.GRANTED, 5000), LeaseGrant.from_json),
    "keeper-report": Body(
        KeeperReport("http://h1:1/v1/lease", {ZERO: 5, ONE: None}, 80),
        compact_json(_KEEPER),
        lambda data: report_from_json(json.loads(data)),
    ),
    "access": _shown(ShownAccess(2, "PEM", "h1:1")),
    "permit": Body(
        Permit(ONE, 2, (ZERO,), "{}"),
        Permit(ONE, 2, (ZERO,), "{}").to_json().encode(),
        lambda data: Permit.from_json(data.decode()),
    ),
}
"""HTTP between tool, launcher, container and AM; the permit is on a container's standard input."""

_REGISTRATION = Registration(12, P1, Host("h1"), "http://h1:1")


def _registration(data: bytes) -> tuple[Registration, str]:
    found = nodes.decode_registration("processor.0000000012", data)
    return found, found.url


ZOOKEEPER: Mapping[str, Body] = {
    "registration": Body(
        (_REGISTRATION, _REGISTRATION.url), nodes.encode_registration(_REGISTRATION), _registration
    ),
    "version": Body(
        7, nodes.encode_number(7), lambda data: nodes.decode_number("jobModels", data), adds=False
    ),
    "plan": Body((PLAN, MODEL), _plan_lines(_STORED), _plan_of, adds=False),
    "plan-head": Body(_HEAD, compact_json(_HEAD), json.loads, adds=False),
}
"""The nodes of a standalone job, and of one that is handed over."""

PLACEMENT: Mapping[str, Body] = {
    "request": Body(REQUEST, encode_request(REQUEST), decode_request),
    **{
        f"response-{response.status.value.lower()}": Body(
            response, encode_response(response), decode_response
        )
        for response in (
            PlacementResponse(REQUEST, PlacementStatus.ACCEPTED, "it waits", 1_700_000_000_001),
        )
    },
}
"""Values of Samza's container placement, with Homeport's field at their end."""


class Records(NamedTuple):
    """Records of one kind: their writer, and what their manager reads of them."""

    write: Callable[[InMemoryCoordinatorStream], None]
    read: Callable[[InMemoryCoordinatorStream], object]
    value: object


_INT, _LONG = 'avro 3f2b87a9fe7cc9b1 "int"', 'avro c32c497df6730c97 "long"'
_READING = Reading("string", _LONG, '"long"')
_IN, _LOG = SystemStream("kafka", "in"), SystemStream("kafka", "log")
_AM = AmEpoch(Rank(2, APPLICATION, 1), (Rank(1, APPLICATION, 2),))
_PERMIT = ProcessorEpoch(9, 2, (ZERO, ONE), 8, 60_000)
_FAILOVER = RecordedFailover(3, ProcessorId("0-0"), Host("h2"), "start", (ProcessorId("0-0"),), "x")
_RETRIES = RetryState(2, 1_700_000_000_000, 4, "division by zero")
_ORDER = UpgradeOrder("u1", APPLICATION, PACKAGE, 5000, by="user")
_STATE = UpgradeState(
    "u1", APPLICATION, PACKAGE, OTHER, 5000, UpgradePhase.BACK, (P0,), P1, 4, "it failed", "line"
)


def _schemas(facts: StateFactManager) -> list[CoordinatorStreamMessage]:
    first = {"kafka.log": StoreForms("string", _INT)}
    return [
        *facts.form_messages(first),
        *facts.writer_messages("kafka.log", _LONG, first["kafka.log"], is_new=True),
        facts.reading_message("kafka.log", _READING),
        facts.announcement("kafka.log", _LONG[:21]),
    ]


RECORDS: Mapping[str, Records] = {
    "submission": Records(
        lambda s: EpochManager(s).write_submission(Submission(2, APPLICATION, "c1")),
        lambda s: EpochManager(s).read_submission(),
        Submission(2, APPLICATION, "c1"),
    ),
    "am-epoch": Records(
        lambda s: EpochManager(s).write_am_epoch(_AM),
        lambda s: EpochManager(s).read_am_epoch(),
        _AM,
    ),
    "processor-epoch": Records(
        lambda s: write_permit(EpochManager(s), P0, _PERMIT),
        lambda s: EpochManager(s).read_processor_epochs(),
        {P0: _PERMIT},
    ),
    "epoch-floor": Records(
        lambda s: s.write([epoch_floor_message(40, "tree-1")]),
        lambda s: (EpochManager(s).read_floor(), EpochManager(s).read_tree()),
        (40, "tree-1"),
    ),
    "fenced": Records(
        lambda s: EpochManager(s).write_fenced(P0, FenceReport(4, (ZERO,))),
        lambda s: EpochManager(s).read_fenced(),
        {P0: FenceReport(4, (ZERO,))},
    ),
    "job-model-version": Records(
        lambda s: s.write([own_records.set_job_model_version(2, "abc")]),
        lambda s: EpochManager(s).read_job_model_version(),
        JobModelVersion(2, "abc"),
    ),
    "stopped": Records(
        lambda s: StopManager(s).write(ZERO, "failed"),
        lambda s: StopManager(s).read(),
        {ZERO: "failed"},
    ),
    "retry-state": Records(
        lambda s: s.write([RetryManager.message(P0, _RETRIES)]),
        lambda s: RetryManager(s).read(),
        {P0: _RETRIES},
    ),
    "failover": Records(
        lambda s: s.write([FailoverManager.message(P0, _FAILOVER)]),
        lambda s: FailoverManager(s).read(),
        {P0: _FAILOVER},
    ),
    "job-end": Records(
        lambda s: s.write([JobEndManager.message(JobEnd(2, "FAILED", "0 failed"))]),
        lambda s: JobEndManager(s).read(2),
        JobEnd(2, "FAILED", "0 failed"),
    ),
    "state-reset": Records(
        lambda s: StateResetManager(s).write(StateReset(2, ResetPhase.BEGUN)),
        lambda s: StateResetManager(s).read(),
        StateReset(2, ResetPhase.BEGUN),
    ),
    "state-fact": Records(
        lambda s: s.write(
            [
                *StateFactManager(s).partition_messages({TaskName("Partition 0"): 0}),
                *StateFactManager(s).form_messages({"kafka.log": StoreForms("string", "json")}),
            ]
        ),
        lambda s: (StateFactManager(s).partitions(), StateFactManager(s).forms()),
        ({TaskName("Partition 0"): 0}, {"kafka.log": StoreForms("string", "json")}),
    ),
    "schemas": Records(
        lambda s: s.write(_schemas(StateFactManager(s))),
        lambda s: StateFactManager(s).schemas(),
        {"kafka.log": StoreSchemas(StoreForms("string", _INT), (_LONG,), _READING, _LONG[:21])},
    ),
    "conversion": Records(
        lambda s: ConversionManager(s).write(Conversion("kafka.log", _LONG[:21], {0: 7, 300: 2})),
        lambda s: ConversionManager(s).read(),
        Conversion("kafka.log", _LONG[:21], {0: 7, 300: 2}),
    ),
    "changelog": Records(
        lambda s: ChangelogPartitionManager(s).write({TaskName("Partition 0"): 0}),
        lambda s: ChangelogPartitionManager(s).read(),
        {TaskName("Partition 0"): 0},
    ),
    "changelog-topic": Records(
        lambda s: ChangelogTopicManager(s).write({_LOG: ChangelogTopicRecord("id-1", "s")}),
        lambda s: ChangelogTopicManager(s).read(),
        {_LOG: ChangelogTopicRecord("id-1", "s")},
    ),
    "checkpoint-topic": Records(
        lambda s: CheckpointTopicManager(s).write(_LOG, "id-2"),
        lambda s: CheckpointTopicManager(s).read(_LOG),
        "id-2",
    ),
    "input-topic": Records(
        lambda s: InputTopicManager(s, 2).write({_IN: "id-3"}, {_IN: 17}),
        lambda s: InputTopicManager(s).read(),
        {_IN: InputTopic("id-3", 2, 17)},
    ),
    "output-topic": Records(
        lambda s: OutputTopicManager(s).write(_IN, "id-4"),
        lambda s: OutputTopicManager(s).read(),
        {_IN: "id-4"},
    ),
    "used-host": Records(
        lambda s: UsedHostManager(s).write(Host("nm1"), 1 << 40),
        lambda s: UsedHostManager(s).read(),
        {Host("nm1"): 0},
    ),
    "input-partitions": Records(
        lambda s: s.write(InputPartitionManager(s).messages({_IN: 4})),
        lambda s: InputPartitionManager(s).read(),
        {_IN: 4},
    ),
    "package": Records(
        lambda s: s.write(JobPackageManager.messages(b"PK\x03\x04")),
        lambda s: [JobPackageManager(s).read(name) for name in JobPackageManager(s).names()],
        [b"PK\x03\x04"],
    ),
    "upgrade-order": Records(
        lambda s: s.write([UpgradeManager.order_message(_ORDER)]),
        lambda s: UpgradeManager(s).orders(APPLICATION).forward,
        _ORDER,
    ),
    "upgrade-refusal": Records(
        lambda s: s.write([UpgradeManager.refusal_message(_ORDER, "it is the same")]),
        lambda s: UpgradeManager(s).orders(APPLICATION).why,
        "it is the same",
    ),
    "upgrade-submitted": Records(
        lambda s: s.write([UpgradeManager.submitted_message(APPLICATION, PACKAGE)]),
        lambda s: UpgradeManager(s).submitted(APPLICATION),
        PACKAGE,
    ),
    "upgrade-state": Records(
        lambda s: s.write([UpgradeManager.state_message(_STATE)]),
        lambda s: UpgradeManager(s).state(APPLICATION),
        _STATE,
    ),
    "audited": Records(
        lambda s: s.write([AuditedManager.message(70)]), lambda s: AuditedManager(s).read(), 70
    ),
}
"""Homeport's own records of the coordinator stream; Samza's are held by Samza's classes."""


def _lines(records: Records) -> bytes:
    stream = InMemoryCoordinatorStream()
    records.write(stream)
    found = [wire.encode(message) for message in stream.catch_up()]
    return b"".join(part + b"\n" for key, value in found for part in (key, value or b""))


def _read(records: Records, data: bytes) -> object:
    stream = InMemoryCoordinatorStream()
    lines = data.split(b"\n")
    pairs = zip(lines[::2], lines[1::2], strict=False)
    stream.write([wire.decode(key, value) for key, value in pairs])
    stream.catch_up()
    return records.read(stream)


def _of_records(records: Records) -> Body:
    return Body(records.value, _lines(records), lambda data: _read(records, data), adds=False)


BODIES: Mapping[str, Body] = {
    **{f"http/{name}": body for name, body in HTTP.items()},
    **{f"zookeeper/{name}": body for name, body in ZOOKEEPER.items()},
    **{f"placement/{name}": body for name, body in PLACEMENT.items()},
    **{f"coordinator-stream/{name}": _of_records(each) for name, each in RECORDS.items()},
}
"""{file below ``tests/golden``, without its ending: its body}."""

_LEAST = CheckIn(CHECK_IN.resource_id, "any_0", 1, Host("h1"), 77, ONE)
FORMER: Mapping[str, object] = {
    "http/check-in": replace(_LEAST, report=ContainerReport(lag=9, lag_seconds=0.5)),
    "http/order-run": Order(OrderKind.RUN, 500, 0, ONE, 2, (ZERO,), "http://h1:1"),
    "http/order-stop": Order(OrderKind.STOP, 500, 9, ONE),
    "http/started": Started(ONE, {"s": {"Partition 0": TAIL}}, {"restore": 0.25}),
    "http/stopped": Stopped(ONE, StopCause.FAILED, 1, ("Traceback",)),
    "http/keeper-report": KeeperReport("http://h1:1/v1/lease", {ZERO: None}),
    "http/permit": Permit(ONE, 2, (ZERO,)),
    "zookeeper/registration": (_REGISTRATION, ""),
    "placement/request": replace(REQUEST, is_warm=False),
}
"""{body: what its reader makes of the file below ``former``, which an earlier version wrote}."""
