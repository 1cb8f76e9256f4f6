"""Golden bodies: the bytes that two versions of Homeport exchange are those of the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_bodies import BODIES, FORMER

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_the_one_of_its_file(name: str) -> None:
    """What is written is the file: the same fields of an object, else the same bytes."""
    body, golden = BODIES[name], (GOLDEN / f"{name}.json").read_bytes()
    if body.adds:
        assert json.loads(body.data) == json.loads(golden)
    else:
        assert body.data.rstrip(b"\n") + b"\n" == golden


@pytest.mark.parametrize("name", BODIES)
def test_the_file_of_a_body_is_read(name: str) -> None:
    """Its reader makes of the file what the writer was given."""
    body = BODIES[name]
    assert body.read((GOLDEN / f"{name}.json").read_bytes().rstrip(b"\n")) == body.value


@pytest.mark.parametrize("name", [name for name, body in BODIES.items() if body.adds])
def test_a_reader_passes_over_what_a_later_version_adds(name: str) -> None:
    """A field of no known name changes nothing."""
    body = BODIES[name]
    later = json.loads((GOLDEN / f"{name}.json").read_bytes()) | {"later": {"x": [1]}}
    assert body.read(json.dumps(later).encode()) == body.value


@pytest.mark.parametrize("name", FORMER)
def test_a_body_of_an_earlier_version_is_read(name: str) -> None:
    """What that version did not know has its default."""
    assert BODIES[name].read((GOLDEN / f"former/{name}.json").read_bytes()) == FORMER[name]


@pytest.mark.parametrize("name", FORMER)
def test_an_earlier_reader_finds_what_it_requires(name: str) -> None:
    """Each field of the earlier body is in today's, with a value of the same kind."""
    former = json.loads((GOLDEN / f"former/{name}.json").read_bytes())
    today = json.loads(BODIES[name].data)
    missing = [key for key in former if key not in today]
    assert missing == []
    assert {key: type(today[key]) for key in former} == {k: type(v) for k, v in former.items()}


def test_each_file_has_its_body() -> None:
    """A file without a body would be read by no test."""
    files = {path.relative_to(GOLDEN).with_suffix("").as_posix() for path in GOLDEN.rglob("*.json")}
    assert files == {*BODIES, *(f"former/{name}" for name in FORMER)}
