"""Names of machines: the table first, then the system."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.appmaster.yarn.node_names import NodeNames, read_hosts_file
from homeport.config.errors import UnavailableError


def test_a_hosts_file_is_read_as_the_system_reads_it(tmp_path: Path) -> None:
    """No comments, any case, several names in a line; a name's first entry counts."""
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost # me\n\n#x\n127.1.2.3  NM1 nm1.local\n127.9.9.9 nm1\n")
    assert read_hosts_file(path) == {
        "localhost": "127.0.0.1",
        "nm1": "127.1.2.3",
        "nm1.local": "127.1.2.3",
    }


def test_the_table_wins_over_the_system() -> None:
    """A name in the table is not looked up anywhere else."""
    assert NodeNames({"localhost": "127.5.5.5"}).address("LocalHost") == "127.5.5.5"
    assert NodeNames({}).address("localhost") == "127.0.0.1"


def test_an_unknown_name_is_reported_with_the_remedy() -> None:
    """The error names the name and where it could be listed."""
    with pytest.raises(UnavailableError, match=r"'no\.such\.invalid'.*HOMEPORT_HOSTS_FILE"):
        NodeNames({}).address("no.such.invalid")


def test_an_endpoint_gets_its_known_address() -> None:
    """Only a host in the table is replaced; an address, another name or an empty text stays."""
    names = NodeNames({"nm1": "127.1.2.3"})
    assert names.with_known_address("nm1:4711") == "127.1.2.3:4711"
    assert names.with_known_address("nm9:4711") == "nm9:4711"
    assert names.with_known_address("") == ""


def test_a_missing_file_is_an_empty_table(tmp_path: Path) -> None:
    """Without the variable, or with one that leads nowhere, names are the system's business."""
    assert NodeNames.from_environment({}).known_address("nm1") is None
    absent = {"HOMEPORT_HOSTS_FILE": str(tmp_path / "gone")}
    assert NodeNames.from_environment(absent).known_address("nm1") is None


def test_a_known_address_has_a_name() -> None:
    """The first one in the table; an address of another machine has none."""
    names = NodeNames({"nm1": "127.1.2.3", "nm1.local": "127.1.2.3"})
    assert names.known_name("127.1.2.3") == "nm1"
    assert names.known_name("127.1.2.4") is None
