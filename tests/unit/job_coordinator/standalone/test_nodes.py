"""Names and values of the nodes: what is written is read back, what is foreign is refused."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import Member, Plan, Registration, Standby
from homeport.job_coordinator.standalone.protocol import BarrierPhase

P, Q = ProcessorId("p"), ProcessorId("q.1-ä")


def task(name: str, number: int) -> TaskModel:
    """A task with one input partition."""
    ssp = SystemStreamPartition("kafka", "in", number)
    return TaskModel(TaskName(name), (ssp,), number)


def planned(task_count: int) -> Plan:
    """One member with tasks, and one without."""
    tasks = {TaskName(f"Partition {i}"): task(f"Partition {i}", i) for i in range(task_count)}
    tasks = dict(sorted(tasks.items()))
    model = JobModel(Config({"job.name": "secret"}), {P: ContainerModel(P, tasks)})
    fence = (Incarnation(P, 3), Incarnation(Q, 2))
    members = (Member(P, 11, 5, tuple(tasks), fence), Member(Q, 12, 7))
    return Plan(7, members, model=model)


@pytest.mark.parametrize(("task_count", "segment_bytes"), [(1, 10_000), (200, 500), (200, 64)])
def test_a_plan_is_read_back(task_count: int, segment_bytes: int) -> None:
    """Z15: small ones from one node, large ones from segments; without the configuration."""
    plan = planned(task_count)
    stored = nodes.encode_plan(plan, 11, segment_bytes)
    assert len(nodes.segment_names(7, stored.value)) == len(stored.segments)
    assert all(len(segment) <= segment_bytes for segment in stored.segments)
    assert bool(stored.segments) == (segment_bytes < 1000)
    found = nodes.decode_plan(7, stored.value, stored.segments)
    assert found == plan
    assert found.model == JobModel(Config({}), plan.model.containers)


@pytest.mark.parametrize("unbacked", [0, 1])
def test_standbys_what_was_lost_and_former_writers_are_read_back(unbacked: int) -> None:
    """A member's standbys are the standby tasks of its container, with the task that each is of."""
    model = planned(1).model
    active = model.containers[P].tasks[TaskName("Partition 0")]
    replica = standby_task(active, 0)
    containers = {**model.containers, Q: ContainerModel(Q, {replica.task_name: replica})}
    standbys = (Standby(active.task_name, replica.task_name),)
    members = (Member(P, 11, 5, (active.task_name,)), Member(Q, 12, 7, standbys=standbys))
    model = JobModel(Config({}), containers)
    plan = Plan(7, members, 3, unbacked, (Incarnation(Q, 3),), model)
    stored = nodes.encode_plan(plan, 11)
    assert nodes.decode_plan(7, stored.value, stored.segments) == plan


def test_a_plan_has_no_fields_that_say_nothing() -> None:
    """It fits a node to the byte."""
    plan = planned(1)
    stored = nodes.encode_plan(plan, 11)
    body = zlib.decompress(stored.value.partition(b"\n")[2]).partition(b"\n")[0]
    assert json.loads(body).keys() == {"version", "members"}
    assert nodes.encode_plan(plan, 11, len(stored.value)) == stored
    assert nodes.encode_plan(plan, 11, len(stored.value) - 1).segments


def test_leaders_write_segments_of_their_own() -> None:
    """Two that write the same version name different nodes."""
    plan = planned(50)
    first, second = (nodes.encode_plan(plan, writer, 64) for writer in (11, 12))
    names = [set(nodes.segment_names(7, stored.value)) for stored in (first, second)]
    assert not names[0] & names[1]


def test_a_damaged_plan_is_refused() -> None:
    """Any one byte less, a segment missing, another version, another format."""
    plan = planned(50)
    stored = nodes.encode_plan(plan, 11, 64)
    with pytest.raises(WireError, match=r"jobModels/7: its .* bytes are not those"):
        nodes.decode_plan(7, stored.value, stored.segments[:-1])
    with pytest.raises(WireError, match="says that it is version 7"):
        nodes.decode_plan(8, stored.value, stored.segments)
    with pytest.raises(WireError, match="reads format 1"):
        nodes.decode_plan(7, stored.value.replace(b'"format":1', b'"format":2'), stored.segments)
    with pytest.raises(WireError, match="jobModels/7 is not JSON"):
        nodes.decode_plan(7, b"host1 p", ())


def test_a_container_without_a_member_is_refused() -> None:
    """A plan whose JobModel names a processor that it has no generation for."""
    plan = planned(1)
    stored = nodes.encode_plan(Plan(7, plan.members[1:], model=plan.model), 11)
    with pytest.raises(WireError, match=r"the containers \['p'\] are none of its members"):
        nodes.decode_plan(7, stored.value, ())


def test_bytes_that_are_not_compressed_are_refused() -> None:
    """With a right checksum of wrong bytes."""
    head = b'{"format":1,"writer":1,"size":3,"crc":%d,"segments":0}\nabc' % zlib.crc32(b"abc")
    with pytest.raises(WireError, match="jobModels/7: Error"):
        nodes.decode_plan(7, head, ())


@pytest.mark.parametrize(("text", "name"), [("", "%"), ("\ud800", "%ED%A0%80")])
def test_text_that_is_no_utf8_and_none_at_all_have_names(text: str, name: str) -> None:
    """As a name from a command line that is not UTF-8."""
    assert (nodes.escaped(text), nodes.unescaped(name)) == (name, text)


@given(st.text(max_size=20), st.text(max_size=20))
def test_names_are_read_back_and_differ(one: str, other: str) -> None:
    """Whatever the text; and no name is one that ZooKeeper refuses."""
    assert nodes.unescaped(nodes.escaped(one)) == one
    assert (nodes.escaped(one) == nodes.escaped(other)) == (one == other)
    assert not set(nodes.escaped(one)) & set("/.-\0")


@pytest.mark.parametrize("name", ["a b", "a.b", "%2e", "a%"])
def test_a_foreign_name_is_refused(name: str) -> None:
    """What ``escaped`` does not make."""
    with pytest.raises(WireError, match="that Homeport does not give"):
        nodes.unescaped(name)


def test_jobs_do_not_share_a_root() -> None:
    """Safety K3: hyphens of the parts are not those between them."""
    one = nodes.root_of("/h/", app=("a", "1"), job=("j-1", "0"), stage="s")
    other = nodes.root_of("/h", app=("a", "1"), job=("j", "1-0"), stage="s")
    assert one == "/h/a-1-j%2D1-0-s"
    assert one != other


def test_registrations_are_read_back() -> None:
    """Id, location and URL are the value, the number is the name."""
    for url in ("", "http://h:1/"):
        registration = Registration(3, Q, Host("rack 1/host-a"), url)
        data = nodes.encode_registration(registration)
        found = nodes.decode_registration("processor.0000000003", data)
        assert found == registration
        assert found.url == url
    with pytest.raises(WireError, match=r"processors/lock-3 is none of a processor"):
        nodes.decode_registration("lock-3", data)


def test_barriers_and_locations_are_read_back() -> None:
    """As plain text."""
    for phase in BarrierPhase:
        assert nodes.decode_barrier(1, phase.value.encode()) is phase
    with pytest.raises(WireError, match="barriers/1 is no phase: b'OPEN'"):
        nodes.decode_barrier(1, b"OPEN")
    assert nodes.decode_location(TaskName("t"), "höhle".encode()) == "höhle"
    with pytest.raises(WireError, match="localityData/t is no text"):
        nodes.decode_location(TaskName("t"), b"\xff")


def test_the_newest_ten_versions_stay() -> None:
    """Z3: in the order of numbers; one that is being published, and foreign names, stay."""
    names = [*(str(v) for v in range(101, 116)), "116", "lock"]
    assert nodes.versions_to_delete(names, 115) == [101, 102, 103, 104, 105]
    assert nodes.versions_to_delete(["9", "10"], 10) == []


def test_numbers_are_plain_text() -> None:
    """A node's own number has ten digits; what is no number is never taken for one."""
    assert nodes.node_name(7) == "processor.0000000007"
    assert nodes.registration_number(nodes.node_name(7)) == 7
    for number in (0, 1, 12, 10**17):
        assert nodes.decode_number("fenced/p", nodes.encode_number(number)) == number
    for data in (b"", b"07", b"-1", b"x", b"\xff"):
        with pytest.raises(WireError, match="the value of fenced/p is no number"):
            nodes.decode_number("fenced/p", data)
