"""The names and values of a job's nodes in ZooKeeper.

PURE. The tree is HA-STANDALONE's, with additions for fencing; see the decisions on standalone jobs.

The value of a version is one line of JSON, then the plan, unless that is in segments. A value that
cannot be read is a ``WireError``: a foreign or damaged node never counts as absent.
"""

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote, unquote

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from homeport.config.config import LONG_MAX, Config
from homeport.config.errors import WireError
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.json_values import parse_object
from homeport.job_coordinator.model.wire_form import Int, Long, json_text, value_of
from homeport.job_coordinator.standalone.plan import (
    Member,
    Plan,
    Registration,
    active_tasks,
    standbys_of,
)
from homeport.job_coordinator.standalone.protocol import BarrierPhase

SEGMENT_BYTES = 512 * 1024
"""Most bytes of a node. ZooKeeper's default limit for a request, with its path, is 1 MiB."""
KEPT_VERSIONS = 10

PROCESSORS, JOB_MODELS, BARRIERS, LOCALITY, FENCED = (
    "processors",
    "jobModels",
    "barriers",
    "localityData",
    "fenced",
)
PREFIX = "processor."
"""The begin of the names below ``processors``; ZooKeeper appends ten digits."""
_FORMAT = 1
_SEQUENCE = re.compile(r"processor\.(\d{10})", re.ASCII)
_VERSION = re.compile(r"[1-9]\d{0,17}", re.ASCII)


# --- names


def escaped(text: str) -> str:
    """Return ``text`` as the name of a node: no two texts have the same name.

    Letters, digits and ``_`` stay. Everything else is escaped, even ``.`` and ``-``: no name is "."
    or "..", and parts that are joined by hyphens stay apart (safety K3).
    """
    if not text:
        return "%"
    safe = quote(text, safe="", errors="surrogatepass")
    return safe.replace("-", "%2D").replace(".", "%2E").replace("~", "%7E")


def unescaped(name: str) -> str:
    """Return the text with this name; WireError if ``escaped`` does not make such a name."""
    text = "" if name == "%" else unquote(name, errors="surrogatepass")
    if escaped(text) != name:
        raise WireError(f"the node {name!r} has a name that Homeport does not give")
    return text


def root_of(base: str, *, app: tuple[str, str], job: tuple[str, str], stage: str) -> str:
    """Return ``<base>/<app name>-<app id>-<job name>-<job id>-<stage>``.

    ``app``, ``job``: (name, id).
    """
    name = "-".join(escaped(part) for part in (*app, *job, stage))
    return f"{base.rstrip('/')}/{name}"


def registration_number(name: str) -> int:
    """Return the number in the name of a node below ``processors``; WireError if it has none."""
    found = _SEQUENCE.fullmatch(name)
    if found is None:
        raise WireError(f"the node {PROCESSORS}/{name} is none of a processor")
    return int(found[1])


def node_name(sequence: int) -> str:
    """Return the node of the registration with this number."""
    return f"{PREFIX}{sequence:010d}"


def versions_to_delete(names: Iterable[str], newest: int) -> list[int]:
    """Return the versions with these names before the newest ``KEPT_VERSIONS``, oldest first.

    A version above ``newest``, which a leader is about to publish, stays. So do other names.
    """
    versions = sorted(int(name) for name in names if _VERSION.fullmatch(name))
    published = [version for version in versions if version <= newest]
    return published[:-KEPT_VERSIONS]


# --- small values


class _RegistrationBody(msgspec.Struct, frozen=True, rename="kebab"):
    processor_id: ProcessorId
    location_id: Host
    url: str | UnsetType | None = UNSET


def encode_registration(registration: Registration) -> bytes:
    """Return the value of a processor's node; the node's name has the number."""
    url = registration.url or UNSET
    body = _RegistrationBody(registration.processor_id, registration.location, url)
    return json_text(body).encode()


def decode_registration(name: str, data: bytes) -> Registration:
    """Return the registration in the node of this name; WireError if it has none."""
    what = f"{PROCESSORS}/{name}"
    body = value_of(_RegistrationBody, parse_object(data, what), what)
    number = registration_number(name)
    return Registration(number, body.processor_id, body.location_id, body.url or "")


def encode_number(number: int) -> bytes:
    """Return the value of a node with a number.

    ``jobModels`` has the newest version, 0 before the first one; a processor's node below
    ``fenced`` a generation, and below a barrier the number of a registration.
    """
    return str(number).encode()


def decode_number(node: str, data: bytes) -> int:
    """Return the number in the value of ``node``; WireError if it has none."""
    text = data.decode("ascii", "replace")
    if text != "0" and not _VERSION.fullmatch(text):
        raise WireError(f"the value of {node} is no number: {data[:40]!r}")
    return int(text)


def decode_barrier(version: int, data: bytes) -> BarrierPhase:
    """Return the phase in the node of a barrier; WireError if it has none."""
    text = data.decode("ascii", "replace")
    try:
        return BarrierPhase(text)
    except ValueError:
        raise WireError(f"the value of {BARRIERS}/{version} is no phase: {data[:40]!r}") from None


def decode_location(task: TaskName, data: bytes) -> Host:
    """Return the location id in a task's node, as plain text; WireError if it is no text."""
    try:
        return Host(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise WireError(f"the value of {LOCALITY}/{escaped(task)} is no text") from None


# --- plans


class _Head(msgspec.Struct, frozen=True):
    format: Long
    writer: Long = 0
    size: Long = 0
    crc: Long = 0
    segments: Int = 0


class _MemberBody(msgspec.Struct, frozen=True):
    registration: Long
    generation: Annotated[int, msgspec.Meta(ge=1, le=LONG_MAX)]
    fence: tuple[Incarnation, ...]


class _PlanBody(msgspec.Struct, frozen=True):
    version: Long
    members: Mapping[ProcessorId, _MemberBody]
    lost: Int | UnsetType | None = UNSET
    unbacked: Int | UnsetType | None = UNSET
    former: tuple[Incarnation, ...] | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A version in its nodes: the value, and the values of the segments, if any."""

    value: bytes
    segments: tuple[bytes, ...] = ()


def segment_name(writer: int, index: int) -> str:
    """Return the name of a segment below its version; no two leaders have the same names."""
    return f"{writer}.{index}"


def encode_plan(plan: Plan, writer: int, segment_bytes: int = SEGMENT_BYTES) -> StoredPlan:
    """Return the plan with its JobModel, but without the configuration.

    ``plan``: its JobModel has a container for each member with tasks. ``writer``: the leader's
    registration. ``segment_bytes``: most bytes of one node.
    """
    model = JobModel(Config({}), plan.model.containers)
    members = {m.processor_id: _MemberBody(m.sequence, m.generation, m.fence) for m in plan.members}
    unbacked = plan.unbacked if plan.lost else UNSET
    body = _PlanBody(plan.version, members, plan.lost or UNSET, unbacked, plan.former or UNSET)
    containers = encode_job_model(model, mask_secrets=False)
    payload = zlib.compress(_line(body) + containers)
    head = _Head(_FORMAT, writer, len(payload), zlib.crc32(payload))
    inline = _line(head) + payload
    if len(inline) <= segment_bytes:
        return StoredPlan(inline)
    starts = range(0, len(payload), segment_bytes)
    parts = tuple(payload[i : i + segment_bytes] for i in starts)
    return StoredPlan(_line(replace(head, segments=len(parts))), parts)


def _line(value: object) -> bytes:
    return json_text(value).encode() + b"\n"


def segment_names(version: int, value: bytes) -> tuple[str, ...]:
    """Return the names of the version's segments by its value; WireError if that is damaged."""
    head, _ = _head(version, value)
    return tuple(segment_name(head.writer, index) for index in range(head.segments))


def decode_plan(version: int, value: bytes, segments: Sequence[bytes]) -> Plan:
    """Return the plan of this version; its JobModel has no configuration.

    WireError: format, size, checksum, version or fields are wrong.
    """
    what = f"{JOB_MODELS}/{version}"
    head, inline = _head(version, value)
    payload = b"".join(segments) if segments else inline
    if (len(payload), zlib.crc32(payload)) != (head.size, head.crc):
        raise WireError(f"{what}: its {len(payload)} bytes are not those that were written")
    try:
        text = zlib.decompress(payload)
    except zlib.error as error:
        raise WireError(f"{what}: {error}") from None
    first, _, rest = text.partition(b"\n")
    body = value_of(_PlanBody, parse_object(first, what), what)
    if body.version != version:
        raise WireError(f"{what}: it says that it is version {body.version}")
    model = decode_job_model(rest)
    strangers = sorted(model.containers.keys() - body.members.keys())
    if strangers:
        raise WireError(f"{what}: the containers {strangers[:3]} are none of its members")
    found = tuple(_member(id_, body.members[id_], model) for id_ in sorted(body.members))
    return Plan(version, found, body.lost or 0, body.unbacked or 0, body.former or (), model)


def _head(version: int, value: bytes) -> tuple[_Head, bytes]:
    first, _, rest = value.partition(b"\n")
    what = f"{JOB_MODELS}/{version}"
    head = value_of(_Head, parse_object(first, what), what)
    if head.format != _FORMAT:
        raise WireError(f"{what}: format {head.format}; this Homeport reads format {_FORMAT}")
    return head, rest


def _member(id_: ProcessorId, body: _MemberBody, model: JobModel) -> Member:
    container = model.containers.get(id_)
    tasks, standbys = active_tasks(container), standbys_of(container)
    return Member(id_, body.registration, body.generation, tasks, body.fence, standbys)
