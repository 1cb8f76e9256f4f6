"""The scenario of an active container that is cut off: written once, for every kind of cluster."""

from __future__ import annotations

import time
from collections.abc import Callable

from failover_scenarios import LEASE_MS, Moment, Scenario
from last_writes import LastWrites, ProcessEnd, stamped_by_the_broker, stated
from yarn_jobs import Job, alive, wait_for

from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.faults import Faults

_WRITES_ON_MS = 1000
"""A part of a lease: so much less is left to a container that was last renewed before it."""


def incarnation(moment: Moment, processor: str) -> Incarnation:
    """That of the processor in that moment."""
    return Incarnation(ProcessorId(processor), moment.containers[processor]["epoch"])


def isolate_an_active(job: Job, faults: Faults, announce: Callable[[str], None]) -> None:
    """Its host loses the AM first, goes on writing, then loses everything: no renewal comes later.

    From its last accepted write to its end it is a lease at most; and the successor's fence is
    later than both.
    """
    with Scenario(job, **{"job.container.count": "1", "task.transaction.ms": "200"}) as scenario:
        host, refuge = scenario.arrange([["0"], ["0-0"]])
        stamped_by_the_broker(job)
        before = scenario.moment()
        gone = incarnation(before, "0")
        pid = job.cluster.pid_here(host, before.containers["0"]["pid"])
        end = ProcessEnd(pid)
        faults.cut_pair(host, scenario.am_host)
        _writes_on(job, gone, time.time() * 1000 + _WRITES_ON_MS)
        faults.cut(host)
        scenario.succeeds(before, "0", "0-0")
        after = scenario.moment()
        assert faults.is_cut(host, "kafka")
        assert after.containers["0"]["host"] == refuge
        assert not alive(pid)
        last = LastWrites.of(job, gone, end, incarnation(after, "0"))
        announce(
            f"last accepted write to own end {last.outlived_ms} ms of {LEASE_MS} ms of lease; "
            f"to the successor's fence {last.fenced_ms - last.accepted_ms} ms; "
            f"accepted after that {last.late_count} of {last.count} batches"
        )
        assert last.outlived_ms <= LEASE_MS
        assert last.accepted_ms < last.ended_ms < last.fenced_ms
        assert last.late_count == 0
        assert scenario.counted_since(before) == {
            "active failures": 1,
            "failed over to a standby": 1,
        }
        faults.heal()
        scenario.ends_well()


def _writes_on(job: Job, writer: Incarnation, until_ms: float) -> None:
    def has_written() -> bool:
        committed = stated(job, "transaction-committed", writer)
        is_late = bool(committed) and committed[-1]["ts_ms"] > until_ms
        return is_late or bool(stated(job, "child-stopped", writer))

    wait_for(has_written, job, every_s=0.05)
