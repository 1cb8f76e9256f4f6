"""Names, folders and the record of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.layout import Layout, Record, name_of, read_record, write_record
from homeport.local_cluster.net.addresses import Addresses
from homeport.local_cluster.processes import ProcessId


@pytest.mark.parametrize("name", ["", "Dev", "-a", "a/b", "a" * 41])
def test_bad_names_are_refused(name: str) -> None:
    """A name becomes a folder and part of settings."""
    with pytest.raises(ClusterError, match="cluster name"):
        Layout(Path("/cache"), name)


@pytest.mark.parametrize("cache", ["/my cache", "/a,b", "/a$b"])
def test_folders_that_hadoop_misreads_are_refused(cache: str) -> None:
    """The remedy is in the message."""
    with pytest.raises(ClusterError, match="set HOMEPORT_CACHE_DIR"):
        Layout(Path(cache), "dev")


def test_record_is_read_as_written(tmp_path: Path) -> None:
    """All fields survive; no temporary file stays."""
    record = Record(
        cluster_id="abc",
        phase="up",
        addresses=Addresses(
            "10.70.3", {"nm1": "10.70.3.11"}, {"web": 5}, rm="10.70.3.3", broker_count=3
        ),
        java_home="/java",
        owner=ProcessId(1, 2),
        daemons={"rm": ProcessId(3, 4)},
        kept=True,
        network="hpabc",
    )
    write_record(tmp_path / "state.json", record)
    assert read_record(tmp_path / "state.json") == record
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_record_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    """Its addresses stand beside the other fields; what it lacks has its default."""
    (tmp_path / "state.json").write_text(
        """{"cluster_id": "abc", "phase": "up", "block": "127.70.3", "nodes": {},
        "rm_ports": {}, "java_home": "/java", "owner": {"pid": 1, "start_time": 2},
        "daemons": {"kafka": {"pid": 3, "start_time": 4}}, "brokers": 3, "zookeeper": true}""",
        encoding="utf-8",
    )
    addresses = Addresses("127.70.3", {}, {}, broker_count=3, has_zookeeper=True)
    daemons = {"kafka": ProcessId(3, 4)}
    record = Record("abc", "up", addresses, "/java", ProcessId(1, 2), daemons)
    assert read_record(tmp_path / "state.json") == record


def test_absent_record_is_no_cluster_and_a_broken_one_an_error(tmp_path: Path) -> None:
    """A half-readable record must not be taken for "nothing runs"."""
    path = tmp_path / "state.json"
    assert read_record(path) is None
    path.write_text('{"phase": "up"}', encoding="utf-8")
    with pytest.raises(ClusterError, match="is not a cluster record"):
        read_record(path)


def test_the_folder_of_the_configuration_names_its_cluster(tmp_path: Path) -> None:
    """That of a cluster that is up; another folder, or none, is that of another cluster."""
    layout = Layout(tmp_path, "dev")
    layout.conf.mkdir(parents=True)
    assert name_of(layout.conf) is None
    layout.state.write_text("{}")
    assert name_of(layout.conf) == "dev"
    for other in (layout.logs, Path("/etc/hadoop/conf"), Path(), layout.root / "a b" / "conf"):
        assert name_of(other) is None
