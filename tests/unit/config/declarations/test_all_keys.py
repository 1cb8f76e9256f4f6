"""Every key once, found by any of its names, and named by the reference in each of its forms."""

from __future__ import annotations

import json

import pytest

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key, Liveness
from homeport.config.declarations.reference import ReferenceFormat, reference
from homeport.config.declarations.samza_keys import ALL


def test_every_name_belongs_to_one_key() -> None:
    """No two keys share a name, present or legacy; each says what it means."""
    names = [name for key in keys.ALL for name in (key.name, *key.legacy)]
    assert len(names) == len(set(names)) > 60
    assert all(key.meaning and key.source for key in keys.ALL)
    assert all(isinstance(key.liveness, Liveness) for key in keys.ALL)


def test_every_default_is_of_its_keys_type() -> None:
    """A default would be accepted as a value of its key."""
    for key in keys.ALL:
        if key.default_text:
            key.check(Config({key.name: key.default_text}), key.name)


def test_fallbacks_are_keys() -> None:
    """The key that stands in for another is one of ours."""
    names = {key.name for key in keys.ALL}
    assert {key.fallback for key in keys.ALL if key.fallback} <= names


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("job.container.count", keys.JOB_CONTAINER_COUNT),
        ("yarn.container.count", keys.JOB_CONTAINER_COUNT),
        ("systems.kafka.samza.offset.default", keys.SYSTEM_OFFSET_DEFAULT),
        ("systems.k.streams.a.b.samza.offset.default", keys.STREAM_OFFSET_DEFAULT),
        (
            "stores.default.changelog.replication.factor",
            keys.STORES_DEFAULT_CHANGELOG_REPLICATION_FACTOR,
        ),
        ("stores.s.changelog", keys.STORE_CHANGELOG),
        ("my.key", None),
        ("job.container.counts", None),
    ],
)
def test_declared_finds_the_key(name: str, declared: object) -> None:
    """Full, legacy and pattern names lead to their key; anything else to none."""
    assert keys.declared(name) is declared


def test_every_key_is_listed() -> None:
    """A key that a module of keys defines is checked, and printed, like all others."""
    defined = {id(key) for key in vars(keys).values() if isinstance(key, Key)}
    assert {id(key) for key in keys.ALL} == defined
    assert len(keys.ALL) == len(defined)


@pytest.mark.parametrize("form", list(ReferenceFormat))
def test_every_key_is_in_the_table(form: ReferenceFormat) -> None:
    """Ours with their older names, and Samza's that have no effect."""
    table = reference(form)
    for key in keys.ALL:
        assert key.name in table
        assert key.meaning in table
        assert all(old in table for old in key.legacy)
    assert all(key.name in table and key.reason in table for key in ALL)


def test_a_key_has_all_that_is_known_of_it() -> None:
    """Type, unit, default, liveness, source and older names."""
    facts = "whole number from 1 to 2147483647, MB; default 1024; next deployment; Samza"
    lines = reference(ReferenceFormat.TEXT, "manager.container.memory.mb").splitlines()
    assert lines[-3:] == [
        "cluster-manager.container.memory.mb",
        "    memory of a container",
        f"    {facts}; older: yarn.container.memory.mb",
    ]


def test_a_part_of_a_name_selects_keys() -> None:
    """Of present and of older names; nothing where no name has it."""
    body = json.loads(reference(ReferenceFormat.JSON, "yarn.container.count"))
    assert [row["key"] for row in body["keys"]] == ["job.container.count"]
    assert body["samza"] == []
    assert reference(ReferenceFormat.MARKDOWN, "no.such.key") == ""


@pytest.mark.parametrize("form", [ReferenceFormat.TEXT, ReferenceFormat.MARKDOWN])
def test_a_part_that_only_samzas_keys_have_shows_those_alone(form: ReferenceFormat) -> None:
    """And one that only ours have shows no heading for Samza's."""
    (key,) = (key for key in ALL if key.name == "yarn.am.opts")
    table = reference(form, key.name)
    assert key.reason in table
    assert "What a change means" not in table
    assert "Samza" not in reference(form, "cluster-manager.container.retry.window.ms").replace(
        "; Samza", ""
    ).replace("| Samza |", "")


def test_markdown_is_a_table() -> None:
    """Every row has as many cells as its head; a bar inside a cell is escaped."""
    rows = reference(ReferenceFormat.MARKDOWN, "job.").split("\n\n")[0].splitlines()
    assert {row.replace(r"\|", "").count("|") for row in rows} == {8}
