"""The route by which a launcher gets a package, on the real server."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from coordinator_server import TOKEN, Served

from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.model.job_package import MAX_BYTES

DATA = random.Random(1).randbytes(300_000)  # noqa: S311 - equal in each run
NAME = hashlib.sha256(DATA).hexdigest()
OTHER = "ab" * 32
JOB = f"Bearer {TOKEN}"


@pytest.fixture(autouse=True)
def _package(served: Served) -> None:
    served.backend.packages[NAME] = DATA


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    """Many launchers."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_the_client_gets_the_package_as_it_is(served: Served) -> None:
    """The largest too, in pieces as its reader takes them."""
    assert served.client().package(NAME) == DATA
    large = DATA * (MAX_BYTES // len(DATA))
    served.backend.packages[OTHER] = large
    assert served.client().package(OTHER) == large


def test_one_that_is_not_there_is_refused(served: Served) -> None:
    """In one line; what names no package is not looked for."""
    with pytest.raises(WireError, match=f"404 there is no package '{OTHER}'"):
        served.client().package(OTHER)
    assert served.backend.looked == [OTHER]
    for odd in ("..", "../../etc/passwd", NAME.upper(), f"{NAME}/0", ""):
        with pytest.raises(WireError, match="404 "):
            served.client().package(odd)
    assert served.backend.looked == [OTHER]


def test_one_that_comes_later_is_found(served: Served) -> None:
    """That it was not there is not kept."""
    with pytest.raises(WireError, match="404"):
        served.client().package(OTHER)
    served.backend.packages[OTHER] = b"PK"
    assert served.client().package(OTHER) == b"PK"


def test_many_launchers_cost_one_look(served: Served, callers: ThreadPoolExecutor) -> None:
    """The stream's pieces are put together once; of two packages the last one is kept."""
    found = list(callers.map(lambda _: served.client().package(NAME), range(20)))
    assert found == [DATA] * 20
    assert served.backend.looked == [NAME]
    served.backend.packages[OTHER] = b"PK"
    for name in (OTHER, OTHER, NAME):
        served.client().package(name)
    assert served.backend.looked == [NAME, OTHER, NAME]


def test_a_caller_that_has_it_gets_no_second_copy(served: Served) -> None:
    """The tag of a package is its sha256."""
    status, headers, _ = served.call("GET", f"/v1/packages/{NAME}", Authorization=JOB)
    assert (status, headers["etag"]) == (200, f'"{NAME}"')
    again = served.call(
        "GET", f"/v1/packages/{NAME}", Authorization=JOB, If_None_Match=headers["etag"]
    )
    assert (again[0], again[2]) == (304, b"")


def test_a_backend_that_cannot_look_now_says_so(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, as of every route: the launcher asks again."""

    async def away(_name: str) -> bytes | None:
        raise UnavailableError("the stream is away")

    monkeypatch.setattr(served.backend, "package", away)
    with pytest.raises(UnavailableError, match="503 the stream is away"):
        served.client().package(NAME)
