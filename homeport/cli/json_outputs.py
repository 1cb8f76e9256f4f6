"""What each command prints with ``--json``: the promise, as a table and as JSON Schema.

A field of the table is always there, one whose name ends in ``?`` may be missing. Fields may be
added to what a command prints; none goes, or gets another type or meaning. ``docs/json-output.md``
is made from this table, and tests hold what the commands print against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Form(StrEnum):
    """How the answer of a command is put together."""

    OBJECT = "one object"
    ARRAY = "one array of objects"
    LINES = "one object in each line"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an answer.

    ``path``: names joined by dots; ``x[]`` is each element of the array x, ``x{}`` each value of
    the object x, whose names are data; ``x?`` may be missing. ``type``: JSON Schema's, several
    joined by ``|``.
    """

    path: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints with ``--json``."""

    form: Form
    fields: tuple[Field, ...]


def _fields(text: str) -> tuple[Field, ...]:
    """A field from each line: path, which may stand in backquotes, type, meaning."""
    found = []
    for line in text.strip().splitlines():
        path, type_, meaning = line.split(maxsplit=2)
        found.append(Field(path.strip("`"), type_, meaning))
    return tuple(found)


_RECORD = """
offset              integer         in the coordinator stream
type?               string          of the record, such as set-config
key?                string          of the record
values?             object|null     its fields; null: it is deleted
source?             string|null     which program wrote it
host?               string          where that ran
username?           string          that of the user it ran as
timestamp?          integer         when, in ms since 1970
fault?              string          why it cannot be read; then only offset is beside it
"""
_CONTAINER = """
containers                      array           each container; of a standalone job each processor
containers[].processor_id       string          its name in the JobModel
containers[].role?              string          active or standby
containers[].replica_of?        string|null     the active container of a standby
containers[].phase              string          where it is on its way, such as running
containers[].host?              string|null     where it is now
containers[].since_ms?          integer|null    since when it is in its phase, in ms since 1970
containers[].epoch?             integer|null    number of its incarnation
containers[].lag?               integer|null    of a standby: records of changelogs it has not read
containers[].report?            object|null     of its work: input_lag, processed, restoring, more
containers[].failures?          integer|null    failures that count against it
containers[].pid?               integer|null    of its process
"""
OUTPUTS: Mapping[str, Output] = {
    "audit": Output(
        Form.ARRAY,
        _fields("""
number?     integer         of the change, since the driver began; missing with --history
at_ms       integer         when, in ms since 1970
author      string          the name of the token, or the user of the tool; or unknown
address     string          of the peer, or the host of the tool; or unknown
through     string          http, or the tool
what        string          what was changed, such as move 0 or config task.commit.ms
before      string|null     as it was, a secret masked; null: nothing was there
after       string|null     as it is then; null: nothing is
"""),
    ),
    "checkpoint show": Output(
        Form.LINES,
        _fields("""
task                string          of the checkpoint
ssp                 string          system.stream.partition
offset              integer|null    of the last record that is processed; null: none yet
oldest              integer         offset of the oldest record that Kafka has
head                integer         offset behind the newest record
lag                 integer|null    records that are not processed
"""),
    ),
    "clean": Output(
        Form.LINES,
        _fields("""
path                string          of the directory
kind                string          what it holds
outcome             string          kept, removed, would be removed, or not removed
reason              string          why
bytes               integer         its size
age_ms              integer         since its newest file was written
"""),
    ),
    "config diff": Output(
        Form.OBJECT,
        _fields("""
{}                  object          by what a change needs, such as live or restart
{}.{}               array           of each key that differs: in force, and wanted; null: not set
"""),
    ),
    "config get": Output(Form.OBJECT, _fields("{}  string  the value of each key that is set")),
    "config reference": Output(
        Form.OBJECT,
        _fields("""
keys                array           each key of a configuration
keys[].key          string          its name; <store> and the like stand for a name
keys[].type         string          what its value must be
keys[].unit         string|null     of the value
keys[].default      string|null     where it is not set
keys[].fallback     string|null     the key that counts where it is not set
keys[].liveness     string          what a change needs while the job runs
keys[].source       string          Samza or Homeport
keys[].legacy       array           older names
keys[].meaning      string          what it does
samza               array           Samza's keys that have no effect here
"""),
    ),
    "coordinator-stream show": Output(Form.LINES, _fields(_RECORD)),
    "coordinator-stream tail": Output(Form.LINES, _fields(_RECORD)),
    "doctor": Output(
        Form.ARRAY,
        _fields("""
check               string          name of the check, such as kafka.replication
level               string          ok, unknown, warning or error
subject             string          what was looked at
found               string          how it is
remedy              string          what to change, with the value; empty where nothing is
"""),
    ),
    "explain": Output(
        Form.OBJECT,
        _fields("""
container               object      as an element of containers of homeport status
container.processor_id  string      its name in the JobModel
container.phase         string      where it is on its way
events                  object      its last decisions, as /v1/events has them
"""),
    ),
    "job-model": Output(
        Form.OBJECT,
        _fields("""
config                              object      all keys, secrets masked
config.{}                           string      the value of a key
containers                          object      by the processor id
containers.{}                       object      a container
containers.{}.tasks                 object      its tasks, by their names
max-change-log-stream-partitions    integer     partitions that a changelog has
"""),
    ),
    "local env": Output(Form.OBJECT, _fields("{}  string  the value of each variable")),
    "local read": Output(
        Form.LINES,
        _fields("""
partition           integer         of the record
offset              integer         of the record
key                 string|null     as text, other bytes as 0x and hexadecimal digits
value               string|null     likewise; null deletes the key
"""),
    ),
    "local status": Output(
        Form.OBJECT,
        _fields("""
name                string          of the cluster
state               string          up, starting, crashed or down
bootstrap_servers   string|null     its Kafka
resource_manager    string|null     base of the ResourceManager's web service
zookeeper           string|null     its ZooKeeper
conf_dir            string|null     folder of Hadoop's configuration
log_dir             string          folder of the logs of daemons
brokers             array           each broker
brokers[].id        integer         its number
brokers[].name      string          kafka, kafka2...
brokers[].address   string          where it listens
brokers[].state     string          RUNNING, STARTING, PAUSED or DOWN
brokers[].controller boolean        whether it is the active controller
brokers[].pid       integer|null    of its process
nodes               array           each node
nodes[].host        string          nm1, nm2...
nodes[].address     string          where it listens
nodes[].state       string          YARN's word, or DOWN, PAUSED
nodes[].pids        array           of its processes
"""),
    ),
    "locality": Output(
        Form.OBJECT,
        _fields("{}  object|string  of each processor its host and address; with --tasks the host"),
    ),
    "logs": Output(
        Form.LINES,
        _fields("""
host                string          the node where the container runs
container           string          YARN's name of it
file                string          the log, in its folder there
line                string          of the log, without its end
"""),
    ),
    "migrate-check": Output(
        Form.ARRAY,
        _fields("""
key                 string          of the Samza job's configuration
verdict             string          what becomes of it
about               string          more of that; may be empty
"""),
    ),
    "state dump": Output(
        Form.LINES,
        _fields("""
key                 string|number|boolean|object|array|null     as its serde reads it
value               string|number|boolean|object|array|null     likewise; bytes as {"bytes": base64}
"""),
    ),
    "state ls": Output(
        Form.LINES,
        _fields("""
path                string          of the directory
kind                string          what it holds; other job: that of another job
store?              string          whose state it is
task?               string          of which task
role?               string|null     active or standby; null: of no container here
bytes?              integer         its size
files?              integer         how many it has
newest_ms?          integer         when its newest file was written, in ms since 1970
position?           integer|null    of the changelog, up to which it has it
head?               integer|null    the end of the changelog
behind?             integer|null    records between these two
holder?             object|null     the process that has it open
is_valid?           boolean         whether a container would begin with it
reason?             string|null     why not
"""),
    ),
    "state verify": Output(
        Form.LINES,
        _fields("""
path                string          of the directory
store               string          whose state it is
task                string          of which task
against             string          what it is compared with
is_equal            boolean         whether both have the same
compared            integer         keys that were compared
different           integer         keys that differ
undecided           integer         keys that cannot be judged
first               array           the first keys that differ
first[].key         string          in hexadecimal digits
first[].how         string          how it differs
fault               string|null     why it could not be compared
"""),
    ),
    "status": Output(
        Form.OBJECT,
        _fields(f"""
job                 object          the job and its attempt
job.name            string          job.name
job.id              string          job.id
job.application     string          of YARN; of a standalone job what stands for it
job.state?          string          new, running and so on
job.health?         string          in one word, of a job on YARN
job.model_version   integer|null    of the JobModel in force
{_CONTAINER.strip()}
"""),
    ),
    "what-if": Output(
        Form.OBJECT,
        _fields("""
version                     integer         of this form
hosts                       array           that would be lost
containers                  array           each container that would not stay as it is
containers[].processor_id   string          its name in the JobModel
containers[].role           string          active or standby
containers[].replica_of     string|null     the active container of a standby
containers[].from           string|null     its host now
containers[].to             string|null     its host then
containers[].phase          string|null     its phase then; null: it is not there any more
containers[].is_placed      boolean         whether it runs in the end, or need not
containers[].takes_over     string|null     the standby whose place it takes
containers[].why            array           reasons, in sentences
unplaced                    array           those without a place
notes                       array           what else follows, in sentences
shortage                    string|null     what is short then
suspects_itself             boolean         whether the driver would take the fault for its own
job                         string          the state of the job then
is_settled                  boolean         whether it was looked to the end
"""),
    ),
}
"""{command, with the word below it: what it prints}. Further ones: ``local logs``, ``config get
KEY`` and ``metrics-targets``, whose answers are no objects of ours."""


def schema(output: Output) -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of the answer; of ``Form.LINES`` of each line."""
    root: dict[str, Any] = {"type": "object"}
    for field in output.fields:
        _add(root, field.path.split("."), field)
    if output.form is Form.ARRAY:
        root = {"type": "array", "items": root}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root}


def _add(node: dict[str, Any], path: list[str], field: Field) -> None:
    """The field is described in the schema of the object that has it."""
    name, *below = path
    bare = name.removesuffix("?").removesuffix("[]").removesuffix("{}")
    if bare:
        child = node.setdefault("properties", {}).setdefault(bare, {})
    else:
        child = node.setdefault("additionalProperties", {})
    if below:
        element = child.setdefault("items", {"type": "object"}) if name.endswith("[]") else child
        _add(element, below, field)
        return
    types = field.type.split("|")
    child["type"] = types if len(types) > 1 else types[0]
    child["description"] = field.meaning
    if bare and not name.endswith("?"):
        node.setdefault("required", []).append(bare)
