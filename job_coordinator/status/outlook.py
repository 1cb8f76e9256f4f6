"""The body of ``GET /v1/what-if``: the effects that the loss of hosts would have. PURE."""

from typing import Annotated

import msgspec

from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.wire_form import about


class ShownFate(
    msgspec.Struct, frozen=True, kw_only=True, rename={"host_before": "from", "host": "to"}
):
    """The effect on one container."""

    processor_id: Annotated[ProcessorId, about("its name in the JobModel")]
    role: Annotated[str, about("active or standby")]
    replica_of: Annotated[ProcessorId | None, about("the active container of a standby")]
    host_before: Annotated[Host | None, about("its host now")]
    host: Annotated[Host | None, about("its host then")]
    phase: Annotated[str | None, about("its phase then; null: it is not there any more")]
    is_placed: Annotated[bool, about("whether it runs in the end, or need not")]
    takes_over: Annotated[ProcessorId | None, about("the standby whose place it takes")]
    why: Annotated[tuple[str, ...], about("reasons, in sentences")]


class ShownOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """The effects on all containers, in the order of their ids."""

    version: Annotated[int, about("of this form")] = 1
    hosts: Annotated[tuple[Host, ...], about("that would be lost")]
    containers: Annotated[
        tuple[ShownFate, ...], about("each container that would not stay as it is")
    ]
    unplaced: Annotated[tuple[ProcessorId, ...], about("those without a place")]
    tasks_moved: Annotated[
        dict[ProcessorId, dict[ProcessorId, int]], about("{mixed container: {other one: tasks}}")
    ] = {}
    unbacked: Annotated[int, about("of these without standby")] = 0
    notes: Annotated[tuple[str, ...], about("what else follows, in sentences")]
    shortage: Annotated[str | None, about("what is short then")]
    suspects_itself: Annotated[bool, about("whether the driver would suspect itself")]
    job: Annotated[str, about("the state of the job then")]
    is_settled: Annotated[bool, about("whether it was looked to the end")]
