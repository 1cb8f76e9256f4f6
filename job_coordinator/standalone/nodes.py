"""What the nodes of a job are called in ZooKeeper, and what they hold.

PURE. The tree is HA-STANDALONE's, with what fencing needs; see the decisions on standalone jobs.

Every value is JSON, but a version's: one line of JSON, then the plan, or no more where that is in
segments. What cannot be read is a ``WireError``: a foreign or damaged node is never taken for none.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from homeport.config.config import INT_MAX, Config
from homeport.config.errors import WireError
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import incarnations_from_json, incarnations_to_json
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.json_values import (
    as_object,
    compact_json,
    optional_field,
    optional_number,
    parse_object,
    required_field,
    required_number,
)
from homeport.job_coordinator.standalone.plan import (
    Member,
    Plan,
    Registration,
    active_tasks,
    standbys_of,
)
from homeport.job_coordinator.standalone.protocol import BarrierPhase

SEGMENT_BYTES = 512 * 1024
"""Most bytes of a node; ZooKeeper takes 1 MiB with the path, and a client's request, by default."""
KEPT_VERSIONS = 10

PROCESSORS, JOB_MODELS, BARRIERS, LOCALITY, FENCED = (
    "processors",
    "jobModels",
    "barriers",
    "localityData",
    "fenced",
)
PREFIX = "processor."
"""How the nodes below ``processors`` begin; ZooKeeper puts ten digits behind it."""
_FORMAT = 1
_SEQUENCE = re.compile(r"processor\.(\d{10})", re.ASCII)
_VERSION = re.compile(r"[1-9]\d{0,17}", re.ASCII)


# --- names


def escaped(text: str) -> str:
    """``text`` as one name of a node: no two texts have the same one, in any case of letters.

    Letters, digits and ``_`` stay; everything else, ``.`` and ``-`` too, is escaped, so that no
    name is "." or ".." and parts that are joined by hyphens stay apart (safety K3).
    """
    if not text:
        return "%"
    safe = quote(text, safe="", errors="surrogatepass")
    return safe.replace("-", "%2D").replace(".", "%2E").replace("~", "%7E")


def unescaped(name: str) -> str:
    """The text that ``escaped`` made the name of; WireError where it made none such."""
    text = "" if name == "%" else unquote(name, errors="surrogatepass")
    if escaped(text) != name:
        raise WireError(f"the node {name!r} has a name that Homeport does not give")
    return text


def root_of(base: str, *, app: tuple[str, str], job: tuple[str, str], stage: str) -> str:
    """``<base>/<app name>-<app id>-<job name>-<job id>-<stage>``; ``app``, ``job``: (name, id)."""
    name = "-".join(escaped(part) for part in (*app, *job, stage))
    return f"{base.rstrip('/')}/{name}"


def registration_number(name: str) -> int:
    """The number of a node below ``processors``; WireError where it is none of a processor."""
    found = _SEQUENCE.fullmatch(name)
    if found is None:
        raise WireError(f"the node {PROCESSORS}/{name} is none of a processor")
    return int(found[1])


def node_name(sequence: int) -> str:
    """The node of the registration with this number."""
    return f"{PREFIX}{sequence:010d}"


def versions_to_delete(names: Iterable[str], newest: int) -> list[int]:
    """Of the versions with these names, those beyond the newest ``KEPT_VERSIONS``, oldest first.

    One above ``newest``, which a leader is about to publish, stays, and names that are no version.

    Source: samza-behaviours 10.3 and Z3.
    """
    versions = sorted(int(name) for name in names if _VERSION.fullmatch(name))
    published = [version for version in versions if version <= newest]
    return published[:-KEPT_VERSIONS]


# --- small values


def encode_registration(registration: Registration, url: str = "") -> bytes:
    """The value of a processor's node; its number is in the name.

    ``url``: where the processor answers HTTP; empty: nowhere.
    """
    body = {"processor-id": registration.processor_id, "location-id": registration.location}
    return compact_json({**body, "url": url} if url else body)


def decode_registration(name: str, data: bytes) -> Registration:
    """The registration that the node of this name holds; WireError where it holds none."""
    body = parse_object(data, f"{PROCESSORS}/{name}")
    return Registration(
        registration_number(name),
        ProcessorId(required_field(body, "processor-id", str)),
        Host(required_field(body, "location-id", str)),
    )


def decode_url(name: str, data: bytes) -> str:
    """Where the processor of that node answers HTTP, empty where nowhere; WireError as above."""
    return optional_field(parse_object(data, f"{PROCESSORS}/{name}"), "url", str) or ""


def encode_version(version: int) -> bytes:
    """The value of ``jobModels``: the newest version, 0 before the first one."""
    return str(version).encode()


def decode_version(data: bytes) -> int:
    """The version that the value of ``jobModels`` names; WireError where it names none."""
    return _number(data, f"the value of {JOB_MODELS} is no version")


def encode_number(number: int) -> bytes:
    """The value of a processor's node below ``fenced`` (a generation) or a barrier."""
    return str(number).encode()


def decode_number(folder: str, name: str, data: bytes) -> int:
    """The number that the node ``name`` below ``folder`` holds; WireError where it holds none."""
    return _number(data, f"the value of {folder}/{name} is no number")


def _number(data: bytes, fault: str) -> int:
    text = data.decode("ascii", "replace")
    if text != "0" and not _VERSION.fullmatch(text):
        raise WireError(f"{fault}: {data[:40]!r}")
    return int(text)


def decode_barrier(version: int, data: bytes) -> BarrierPhase:
    """The phase that the node of a barrier holds; WireError where it holds none."""
    text = data.decode("ascii", "replace")
    try:
        return BarrierPhase(text)
    except ValueError:
        raise WireError(f"the value of {BARRIERS}/{version} is no phase: {data[:40]!r}") from None


def decode_location(task: TaskName, data: bytes) -> Host:
    """The location id that a task's node holds, as plain text; WireError where it is no text."""
    try:
        return Host(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise WireError(f"the value of {LOCALITY}/{escaped(task)} is no text") from None


# --- plans


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A version as its nodes hold it: the value, and the values of the segments, if any."""

    value: bytes
    segments: tuple[bytes, ...] = ()


def segment_name(writer: int, index: int) -> str:
    """The node of a segment below its version: a leader never overwrites another one's."""
    return f"{writer}.{index}"


def encode_plan(plan: Plan, writer: int, segment_bytes: int = SEGMENT_BYTES) -> StoredPlan:
    """Return the plan with its JobModel, which has the tasks, without the configuration.

    Args:
        plan: the containers of its JobModel are its members with tasks.
        writer: the leader's registration.
        segment_bytes: most bytes of one node.
    """
    model = JobModel(Config({}), plan.model.containers)
    body = {
        "version": plan.version,
        "members": {
            m.processor_id: {
                "registration": m.sequence,
                "generation": m.generation,
                "fence": incarnations_to_json(m.fence),
            }
            for m in plan.members
        },
    }
    if plan.lost:
        body |= {"lost": plan.lost, "unbacked": plan.unbacked}
    if plan.former:
        body["former"] = incarnations_to_json(plan.former)
    containers = encode_job_model(model, mask_secrets=False)
    payload = zlib.compress(compact_json(body) + b"\n" + containers)
    head = {"format": _FORMAT, "writer": writer, "size": len(payload), "crc": zlib.crc32(payload)}
    inline = compact_json({**head, "segments": 0}) + b"\n" + payload
    if len(inline) <= segment_bytes:
        return StoredPlan(inline)
    starts = range(0, len(payload), segment_bytes)
    parts = tuple(payload[i : i + segment_bytes] for i in starts)
    return StoredPlan(compact_json({**head, "segments": len(parts)}) + b"\n", parts)


def segment_names(version: int, value: bytes) -> tuple[str, ...]:
    """The nodes that hold the rest of the version with this value; WireError where it has none."""
    head, _ = _head(version, value)
    count = required_number(head, "segments", 0, INT_MAX)
    writer = required_number(head, "writer")
    return tuple(segment_name(writer, index) for index in range(count))


def decode_plan(version: int, value: bytes, segments: Sequence[bytes]) -> Plan:
    """Return the plan of this version; its JobModel has no configuration.

    Raises:
        WireError: format, size, checksum, version or fields are not as they must be.
    """
    what = f"{JOB_MODELS}/{version}"
    head, inline = _head(version, value)
    payload = b"".join(segments) if segments else inline
    if (len(payload), zlib.crc32(payload)) != (
        required_number(head, "size"),
        required_number(head, "crc"),
    ):
        raise WireError(f"{what}: its {len(payload)} bytes are not those that were written")
    try:
        text = zlib.decompress(payload)
    except zlib.error as error:
        raise WireError(f"{what}: {error}") from None
    first, _, rest = text.partition(b"\n")
    body = parse_object(first, what)
    if required_number(body, "version") != version:
        raise WireError(f"{what}: it says that it is version {body['version']}")
    model = decode_job_model(rest)
    members = required_field(body, "members", dict)
    strangers = sorted(model.containers.keys() - members.keys())
    if strangers:
        raise WireError(f"{what}: the containers {strangers[:3]} are none of its members")
    found = tuple(_member(id_, members[id_], model, what) for id_ in sorted(members))
    lost = optional_number(body, "lost", 0, INT_MAX) or 0
    unbacked = optional_number(body, "unbacked", 0, INT_MAX) or 0
    former = incarnations_from_json(body, "former") if "former" in body else ()
    return Plan(version, found, lost, unbacked, former, model)


def _head(version: int, value: bytes) -> tuple[dict[str, object], bytes]:
    first, _, rest = value.partition(b"\n")
    what = f"{JOB_MODELS}/{version}"
    head = parse_object(first, what)
    if required_number(head, "format") != _FORMAT:
        raise WireError(f"{what}: format {head['format']}; this Homeport reads format {_FORMAT}")
    return head, rest


def _member(id_: str, value: object, model: JobModel, what: str) -> Member:
    body: Mapping[str, object] = as_object(value, f"{what}, member {id_!r}")
    processor_id = ProcessorId(id_)
    container = model.containers.get(processor_id)
    return Member(
        processor_id,
        required_number(body, "registration"),
        required_number(body, "generation", 1),
        active_tasks(container),
        incarnations_from_json(body, "fence"),
        standbys_of(container),
    )
