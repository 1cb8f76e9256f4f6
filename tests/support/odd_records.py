"""Records of the coordinator stream that no tool of ours writes: what anybody may put there."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from homeport.job_coordinator.coordinator_stream.message import MessageType, Namespace

BEYOND = 10**400
_DIGITS = "7" * 5_000
"""More than Python reads."""
_DEEP = 2_000
_PACKAGE = "ab" * 32

_NAMES = (
    *("value", "Partition", "partition", "host", "hostname", "containerId", "taskMode"),
    *("taskNames", "number", "application", "claim", "submission", "attempt", "unfenced"),
    *("epoch", "model-version", "permitted", "fence", "fenced", "cause", "count", "since"),
    *("standby", "step", "used", "result", "diagnostics", "phase", "topic-id", "store"),
    *("version", "digest", "pieces", "bytes", "data"),
)
_KEYS = (
    *("0", "0-0", "Partition 0", "job-model", "am", "submission", "job-end", "state-reset"),
    "epoch-floor",
    *(
        _PACKAGE,
        f"{_PACKAGE}/0",
        "kafka.in",
        "my.key",
        "u.ContainerPlacementRequestMessage",
        "other",
        "",
    ),
    *("u.ContainerPlacementResponseMessage", "x" * 300_000 + ".ContainerPlacementRequestMessage"),
    '{"system":"kafka","partition":99999999999999999999,"stream":"in","keyBucket":-1}',
    '{"system":"kafka","partition":0,"stream":"in","keyBucket":-1}',
)
_RIGHT: dict[str, tuple[str, dict[str, str]]] = {
    "set-config": ("task.commit.ms", {"value": "5000"}),
    "set-changelog": ("Partition 0", {"Partition": "0"}),
    "set-container-host-assignment": ("0", {"host": "a", "epoch": "1"}),
    "set-task-host-assignment": ("Partition 0", {"host": "a", "epoch": "1"}),
    "set-task-container-assignment": ("Partition 0", {"containerId": "0"}),
    "set-task-mode-assignment": ("Partition 0", {"taskMode": "Active"}),
    "set-task-partition-assignment": (
        '{"system":"kafka","partition":0,"stream":"in","keyBucket":-1}',
        {"taskNames": '["Partition 0"]'},
    ),
    "set-submission": ("submission", {"number": "1", "application": "application_1_0001"}),
    "set-am-epoch": (
        "am",
        {
            "submission": "1",
            "application": "application_1_0001",
            "attempt": "1",
            "unfenced": '[{"submission":1,"application":"application_1_0000","attempt":1}]',
        },
    ),
    "set-processor-epoch": (
        "0",
        {
            "epoch": "2",
            "model-version": "1",
            "fence": '[{"processor_id":"0","epoch":1}]',
            "permitted": "1",
        },
    ),
    "set-epoch-floor": ("epoch-floor", {"epoch": "7"}),
    "set-fenced": ("0", {"epoch": "1", "fenced": '[{"processor_id":"0","epoch":0}]'}),
    "set-stopped": ("9", {"epoch": "1", "cause": "killed"}),
    "set-retry-state": ("0", {"count": "1", "since": "1"}),
    "set-failover": (
        "0",
        {"epoch": "1", "standby": "0-0", "host": "b", "step": "x", "used": "[]", "cause": ""},
    ),
    "set-upgrade": (
        "state",
        {
            "id": "u",
            "application": "a",
            "package": "ab" * 32,
            "watch-ms": "1",
            "phase": "forward",
            "given": "[]",
            "lag-before": "1",
            "reason": "",
        },
    ),
    "set-job-end": ("job-end", {"submission": "9", "result": "KILLED", "diagnostics": ""}),
    "set-state-reset": ("state-reset", {"submission": "1", "phase": "finished"}),
    "set-audited": ("set-config", {"offset": "1"}),
    "set-package": (_PACKAGE, {"pieces": "1", "bytes": "0"}),
    "set-changelog-topic": ("kafka.counts", {"topic-id": "x", "store": "counts"}),
    "set-state-fact": ("partitions 0", {"0": "Partition 0", "1": "Partition 1"}),
    "set-output-topic": ("kafka.out", {"topic-id": "x"}),
    "set-input-topic": ("kafka.in", {"topic-id": "x", "submission": "9"}),
    "set-job-model-version": ("job-model", {"version": "1", "digest": "x"}),
}
"""{type: key and values of a record of ours}, of which one value is replaced."""
_LIST_FIELDS = frozenset({"unfenced", "fence", "fenced", "used", "taskNames"})

NUMBERS = st.sampled_from(
    [
        *(BEYOND, -BEYOND, 2**63, 2**63 - 1, 2**31, 10**18, 10**18 - 1, -1, 0, 1),
        *(1e308, float("nan"), float("inf"), -0.0, 0.5, True, False),
    ]
)
_TEXTS = st.one_of(
    st.text(max_size=20),
    st.just("\ud800"),
    NUMBERS.map(json.dumps),
    st.sampled_from([_DIGITS, "\ud800", "x" * 300_000, "²", "[" * _DEEP, "null", '"\\ud800"', "0"]),
)
_LEAVES = st.one_of(st.none(), NUMBERS, _TEXTS)
VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)
_LISTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "processor_id": _LEAVES | st.just("0"),
            "epoch": _LEAVES,
            "submission": _LEAVES,
            "application": _LEAVES | st.just("application_1_0001"),
            "attempt": _LEAVES,
        },
    ),
    max_size=3,
).map(json.dumps)
_ENVELOPES = st.fixed_dictionaries(
    {"values": VALUES | st.dictionaries(st.sampled_from(_NAMES), VALUES | _LISTS, max_size=8)},
    optional={"timestamp": _LEAVES, "host": _LEAVES, "source": _LEAVES, "username": _LEAVES},
)
_PLACEMENTS = st.fixed_dictionaries(
    {
        "subType": st.sampled_from(
            ["ContainerPlacementRequestMessage", "ContainerPlacementResponseMessage"]
        ),
        "uuid": st.just("u") | _LEAVES,
        "deploymentId": st.just("application_1_0001") | _LEAVES,
        "processorId": st.just("0") | _LEAVES,
        "destinationHost": st.sampled_from(["ANY_HOST", "LAST_SEEN", "b"]) | _LEAVES,
        "statusCode": st.sampled_from(["CREATED", "IN_PROGRESS", "ACCEPTED", "FAILED"]) | _LEAVES,
        "timestamp": NUMBERS,
        "responseMessage": st.just("") | _LEAVES,
    },
    optional={
        "requestExpiry": _LEAVES,
        "homeport": st.fixed_dictionaries(
            {}, optional={"requested": _LEAVES, "epoch": _LEAVES, "host": _LEAVES}
        ),
    },
)
_RAW = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"[" * _DEEP,
            b'{"values":' * _DEEP,
            b'{"values":{"epoch":' + _DIGITS.encode() + b"}}",
            b'{"values":{"epoch":"1","epoch":"2"},"values":{"epoch":"3"}}',
            b'{"values":{"epoch":1e400,"count":NaN}}',
            b'\xff\xfe{"values":{}}',
        ]
    ),
)


def _bytes(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@st.composite
def _nearly_right(draw: st.DrawFn, kind: str) -> tuple[bytes, bytes]:
    name, values = _RIGHT[kind]
    field = draw(st.sampled_from(sorted(values)))
    odd = draw(_LISTS | _LEAVES if field in _LIST_FIELDS else _LEAVES)
    return _bytes([1, kind, name]), _bytes({"values": {**values, field: odd}})


@st.composite
def records(draw: st.DrawFn, types: tuple[str, ...] = ()) -> tuple[bytes, bytes | None]:
    """Key and value of a record, mostly of a form that its reader looks into.

    ``types``: of one of these; by default of any type or namespace, also an unknown one.
    """
    known = types or (*MessageType, *Namespace, "set-nothing")
    kind = draw(st.sampled_from(known))
    if kind == Namespace.PLACE_CONTAINER and draw(st.booleans()):
        body = draw(_PLACEMENTS)
        name = f"{body['uuid']}.{body['subType']}"
        return _bytes([1, kind, name]), _bytes(body)
    if kind in _RIGHT and draw(st.booleans()):
        return draw(_nearly_right(kind))
    name = draw(st.sampled_from(_KEYS) | st.text(max_size=10))
    key = _bytes([draw(st.sampled_from([1, 1, 1, "1", 2, True, BEYOND])), kind, name])
    value = draw(st.one_of(_ENVELOPES.map(_bytes), _ENVELOPES.map(_bytes), _RAW, st.none()))
    return (draw(_RAW) if draw(st.integers(0, 20)) == 20 else key), value
