"""Where a processor is, as a class of the job's own says."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.container.standalone.location import location_of

KEY = "job.location-id.provider.factory"
CODE = """
from homeport.container.standalone.location import LocationIdProvider

class Slice(LocationIdProvider):
    def location_id(self):
        return f" slice-{self.config['my.slice']} "

class Empty(LocationIdProvider):
    def location_id(self):
        return " "

class Failing(LocationIdProvider):
    def location_id(self):
        raise ValueError("no slice")

Stranger = 5
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job's code is on the path."""
    (tmp_path / "own_location.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "broken_location.py").write_text("1/0", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_provider_says_the_location() -> None:
    """It has the configuration; Samza's default provider is the host name, as without one."""
    config = Config({KEY: "own_location:Slice", "my.slice": "7"})
    assert location_of(config, {}, "h") == "slice-7"
    java = "org.apache.samza.runtime.DefaultLocationIdProviderFactory"
    assert location_of(Config({"locationid.provider.factory": java}), {}, "H") == "h"
    assert location_of(Config({"job.location-id": "env:NODE"}), {"NODE": "n"}, "h") == "n"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("own_location:Empty", "the provider gave ' ', which is no location"),
        ("own_location:Failing", "the provider has failed: ValueError: no slice"),
        ("own_location:Stranger", "it must name a subclass of LocationIdProvider"),
        ("own_location:None_such", "the module own_location has no 'None_such'; correct"),
        ("no_such_module:X", "the module cannot be imported: "),
        ("broken_location:X", "the module cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_provider_that_cannot_be_used_is_named_in_one_line(name: str, why: str) -> None:
    """Before the processor registers."""
    with pytest.raises(ConfigError) as caught:
        location_of(Config({KEY: name}), {}, "h")
    assert str(caught.value).startswith(f"{KEY} = {name!r}: {why}")
    assert "\n" not in str(caught.value)


def test_a_location_is_said_once() -> None:
    """Two keys could disagree."""
    config = Config({KEY: "own_location:Slice", "job.location-id": "a"})
    with pytest.raises(ConfigError, match=r"job\.location-id says the location already"):
        location_of(config, {}, "h")
