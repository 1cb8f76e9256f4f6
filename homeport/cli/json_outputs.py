"""What each command prints with ``--json``: the type of the answer, and its JSON Schema.

What a type writes is always there, a field of ``UNSET`` may be missing. Fields may be added to what
a command prints; none goes, or gets another type or meaning. ``docs/json-output.md`` is made of the
fields that have a meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from homeport.appmaster.doctor.finding import Finding
from homeport.cli.host.checkpoint_commands import ShownPosition
from homeport.cli.host.state_convert import ShownConversion
from homeport.cli.host.state_dump import ShownPair
from homeport.cli.host.state_list import ShownDirectory
from homeport.cli.host.state_verify import ShownAnswer
from homeport.cli.host.sweep import Swept
from homeport.cli.job.config_commands import Differences, Values
from homeport.cli.job.explain_command import Explained
from homeport.cli.job.job_model_command import ShownJobModel
from homeport.cli.job.stream_commands import ShownRecord
from homeport.cli.local.topic_commands import ReadRecord
from homeport.cli.yarn.job_deletion import Ended
from homeport.cli.yarn.logs_command import LogLine
from homeport.config.declarations.reference import ShownKeys
from homeport.config.settings import samza_job
from homeport.job_coordinator.http.audit import AuditedChange
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.model.wire_form import about
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import ShownStatus
from homeport.local_cluster.status import ClusterStatus


class Form(StrEnum):
    """How the answer of a command is put together."""

    OBJECT = "one object"
    ARRAY = "one array of objects"
    LINES = "one object in each line"


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints with ``--json``; ``type``: of each object."""

    form: Form
    type: Any


OUTPUTS: Mapping[str, Output] = {
    "audit": Output(Form.ARRAY, AuditedChange),
    "checkpoint show": Output(Form.LINES, ShownPosition),
    "clean": Output(Form.LINES, Swept),
    "config diff": Output(Form.OBJECT, Differences),
    "config get": Output(Form.OBJECT, Values),
    "config reference": Output(Form.OBJECT, ShownKeys),
    "config show": Output(Form.OBJECT, Values),
    "coordinator-stream show": Output(Form.LINES, ShownRecord),
    "coordinator-stream tail": Output(Form.LINES, ShownRecord),
    "delete-job": Output(Form.LINES, Ended),
    "doctor": Output(Form.ARRAY, Finding),
    "explain": Output(Form.OBJECT, Explained),
    "job-model": Output(Form.OBJECT, ShownJobModel),
    "local env": Output(
        Form.OBJECT, Mapping[str, Annotated[str, about("the value of each variable")]]
    ),
    "local read": Output(Form.LINES, ReadRecord),
    "local status": Output(Form.OBJECT, ClusterStatus),
    "locality": Output(
        Form.OBJECT,
        Mapping[
            str,
            Annotated[
                Mapping[str, Any] | str,
                about("of each processor its host and address; with --tasks the host"),
            ],
        ],
    ),
    "logs": Output(Form.LINES, LogLine),
    "migrate-check": Output(Form.ARRAY, samza_job.Finding),
    "state convert": Output(Form.OBJECT, ShownConversion),
    "state dump": Output(Form.LINES, ShownPair),
    "state ls": Output(Form.LINES, ShownDirectory),
    "state verify": Output(Form.LINES, ShownAnswer),
    "status": Output(Form.OBJECT, ShownStatus),
    "what-if": Output(Form.OBJECT, ShownOutlook),
}
"""{command, with the word below it: what it prints}. Further ones: ``local logs``, ``config get
KEY`` and ``metrics-targets``, whose answers are no objects of ours."""

_NONE = object()
_OMITS_DEFAULTS = frozenset({Restored.__name__})


def schema(output: Output) -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of the answer; of ``Form.LINES`` of each line."""
    (root,), types = msgspec.json.schema_components([output.type], ref_template="#/$defs/{name}")
    for name, found in types.items():
        found["description"] = " ".join(found.get("description", name).split())
        defaults = {
            n
            for n, f in found.get("properties", {}).items()
            if f.pop("default", _NONE) is not _NONE
        }
        if name not in _OMITS_DEFAULTS and defaults:
            required = {*found["required"], *defaults}
            found["required"] = [n for n in found["properties"] if n in required]
    if output.form is Form.ARRAY:
        root = {"type": "array", "items": root}
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **root}
    return {**made, "$defs": types} if types else made
