"""JobModel and configuration as served: whole and in parts, masked, compressed, tagged."""

from __future__ import annotations

import gzip
import json
from urllib.parse import quote

import pytest
from coordinator_server import TOKEN, Served, small_model

from homeport.config.errors import UnavailableError, WireError
from homeport.config.secret_values import MASK
from homeport.job_coordinator.grouper.standby_models import temporary_standby
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)

BEARER = f"Bearer {TOKEN}"
STRANGE_IDS = (
    *("0", "0-0", "a b", "a/b", "a%2Fb", "%", "a+b", "?y#z", ".", "..", "{x}", "'"),
    *("ä-ö", "日本"),
)
BIG = " ".join(str(n) for n in range(400_000))


def _of_processors(*ids: str) -> JobModel:
    containers = {}
    for n, id_ in enumerate(ids):
        name = TaskName(f"Partition {n}")
        task = TaskModel(name, (SystemStreamPartition("kafka", "in", n),), n)
        containers[ProcessorId(id_)] = ContainerModel(ProcessorId(id_), {name: task})
    return JobModel(small_model().config, containers)


def test_the_client_reads_the_job_model_of_any_version(served: Served) -> None:
    """With the token the very model, secrets included; an older version where asked."""
    client = served.client()
    assert client.job_model() == served.backend.models[2]
    assert client.job_model(1) == served.backend.models[1]
    with pytest.raises(WireError, match="404 there is no JobModel of version 7"):
        client.job_model(7)


def test_the_job_model_is_served_as_samza_does(served: Served) -> None:
    """``GET /``: exact content type, and the codec's bytes."""
    status, headers, body = served.call("GET", "/")
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert body == encode_job_model(served.backend.models[2], mask_secrets=True)
    status, headers, body = served.call("HEAD", "/")
    assert (status, body) == (200, b"")


def test_an_unchanged_job_model_is_not_sent_again(served: Served) -> None:
    """The tag gives 304 until the model changes; the two maskings have different tags."""
    _, headers, _ = served.call("GET", "/")
    assert headers["vary"] == "Authorization, Accept-Encoding"
    tag = headers["etag"]
    status, headers, body = served.call("GET", "/", If_None_Match=f'"x", {tag}')
    assert (status, headers["etag"], body) == (304, tag, b"")
    token = f"Bearer {TOKEN}"
    status, headers, _ = served.call("GET", "/", If_None_Match=tag, Authorization=token)
    assert status == 200
    assert headers["etag"] != tag
    assert headers["cache-control"] == "private, no-cache"
    served.backend.models[None] = small_model(new="yes")
    assert served.call("GET", "/", If_None_Match=tag)[0] == 200


def test_before_there_is_a_job_model_callers_must_wait(served: Served) -> None:
    """503, which the client takes for not available; not an error of the caller."""
    del served.backend.models[None]
    with pytest.raises(UnavailableError, match="503 there is no JobModel yet"):
        served.client().job_model()


@pytest.mark.parametrize("version", ["", "x", "-1", "1.0", "9" * 30, "%D9%A3"])
def test_a_version_is_a_number(served: Served, version: str) -> None:
    """Anything else is refused."""
    assert served.error("GET", f"/?version={version}").startswith("400 version is not a number")


def test_config_is_flat_and_masked_without_token(served: Served) -> None:
    """``GET /config`` shows secrets to the token's holder only."""
    body = served.call("GET", "/config")[2]
    assert json.loads(body) == {"db.password": MASK, "job.name": "Flüge"}
    body = served.call("GET", "/config", Authorization=f"bearer {TOKEN}")[2]
    assert json.loads(body) == {"db.password": "pw", "job.name": "Flüge"}


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("br;q=1.0, x-gzip ; q=1", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000", False),
        ("identity", False),
        ("gzipped", False),
        ("", False),
    ],
)
def test_compression_is_agreed_as_http_says(
    served: Served, accepted: str, *, is_packed: bool
) -> None:
    """Gzip only for clients that accept it; the answer says that it depends on that."""
    for path in ("/", "/config", "/v1/processors/0/model"):
        _, headers, body = served.call("GET", path, Accept_Encoding=accepted)
        assert headers["vary"] == "Authorization, Accept-Encoding"
        assert headers.get("content-encoding") == ("gzip" if is_packed else None)
        json.loads(gzip.decompress(body) if is_packed else body)


@pytest.mark.parametrize("path", ["/", "/config", "/v1/processors/0/model"])
def test_a_large_document_is_the_same_in_every_form(served: Served, path: str) -> None:
    """Plain, compressed, and HEAD, which names the length and sends nothing."""
    served.backend.models[None] = small_model(big=BIG)
    _, plain_headers, plain = served.call("GET", path)
    _, packed_headers, packed = served.call("GET", path, Accept_Encoding="gzip")
    assert gzip.decompress(packed) == plain
    assert plain_headers["etag"] == packed_headers["etag"]
    assert json.loads(plain)
    status, headers, body = served.call("HEAD", path)
    assert (status, body) == (200, b"")
    assert headers["content-length"] == str(len(plain))
    assert headers["etag"] == plain_headers["etag"]
    assert served.call("GET", path, If_None_Match=headers["etag"])[0] == 304


@pytest.mark.parametrize("id_", STRANGE_IDS)
def test_the_part_of_any_processor(served: Served, id_: str) -> None:
    """Whatever its id: the JobModel with its container alone, as the client asks and as text."""
    served.backend.models[2] = served.backend.models[None] = model = _of_processors(id_, "other")
    own = JobModel(model.config, {ProcessorId(id_): model.containers[ProcessorId(id_)]})
    assert served.client().processor_model(ProcessorId(id_), 2) == own
    body = served.call("GET", f"/v1/processors/{quote(id_, safe='')}/model")[2]
    assert decode_job_model(body).containers == own.containers


def test_the_part_of_a_temporary_standby(served: Served) -> None:
    """It is in no JobModel; its part names its active container's tasks."""
    model = _of_processors("0")
    served.backend.models[2] = served.backend.models[None] = model
    standby = temporary_standby(model.containers[ProcessorId("0")])
    served.backend.temporary[standby.processor_id] = standby
    part = served.client().processor_model(ProcessorId("0-warm"), 2)
    assert part.containers[standby.processor_id] == standby
    assert ProcessorId("0-warm") not in served.client().job_model().containers


def test_the_part_of_an_older_version(served: Served) -> None:
    """A permit's version is served, also for a processor that the present model has no more."""
    served.backend.models[1] = old = _of_processors("0", "gone")
    gone = ProcessorId("gone")
    part = served.client().processor_model(gone, 1)
    assert part == JobModel(old.config, {gone: old.containers[gone]})
    with pytest.raises(WireError, match="404 the JobModel has no processor 'gone'"):
        served.client().processor_model(gone, 2)
    with pytest.raises(WireError, match="404 there is no JobModel of version 3"):
        served.client().processor_model(gone, 3)
    path = "/v1/processors/0/model?version=x"
    assert served.error("GET", path) == "400 version is not a number: 'x'"


def test_a_part_is_masked_and_tagged_by_itself(served: Served) -> None:
    """Secrets need the token; each part has its own tag, which stays while the part does."""
    served.backend.models[None] = _of_processors("0", "1")
    path = "/v1/processors/0/model"
    _, headers, body = served.call("GET", path)
    assert json.loads(body)["config"]["db.password"] == MASK
    _, trusted, body = served.call("GET", path, Authorization=BEARER)
    assert json.loads(body)["config"]["db.password"] == "pw"
    other = served.call("GET", "/v1/processors/1/model")[1]
    assert len({headers["etag"], trusted["etag"], other["etag"]}) == 3
    assert trusted["cache-control"] == "private, no-cache"
    served.backend.models[None] = _of_processors("0", "2")
    assert served.call("GET", path, If_None_Match=headers["etag"])[0] == 304
    assert served.call("GET", path, If_None_Match=other["etag"])[0] == 200


def test_an_empty_processor_id_is_no_path(served: Served) -> None:
    """404, as for any path that is not known."""
    assert served.error("GET", "/v1/processors//model").startswith("404 ")
