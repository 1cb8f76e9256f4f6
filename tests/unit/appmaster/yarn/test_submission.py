"""What is submitted to YARN, and what never is."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from homeport.appmaster.yarn.resource_manager_rest import HTTPS_TAG
from homeport.appmaster.yarn.submission import (
    TUNED_YARN_SITE,
    NodePython,
    Submission,
    am_java_options,
    private_yarn_site,
    specification,
)
from homeport.appmaster.yarn.submission_file import (
    SUBMISSION_FILE_NAME,
    SubmissionFile,
    Submitted,
    coordinator_part,
)
from homeport.config.config import Config
from homeport.config.errors import ConfigError, WireError
from homeport.job_coordinator.client_files import forget_token, token_path
from homeport.job_coordinator.own_folders import cache_folder

Specify = Callable[..., Any]
CONFIG = Config(
    {
        "job.name": "counts",
        "job.id": "7",
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "broker:9092",
        "systems.kafka.consumer.sasl.password": "hush",
        "systems.other.consumer.bootstrap.servers": "broker2:9092",
        "task.class": "m:C",
        "cluster-manager.container.memory.mb": "700",
        "cluster-manager.container.cpu.cores": "2",
        "yarn.queue": "streams",
        "yarn.am.container.memory.mb": "800",
        "yarn.am.max-attempts": "4",
    }
)
FILE = Config({**{k: v for k, v in CONFIG.items() if k != "yarn.queue"}, "task.class": "m:B"})
"""Without what the writer tool had set: it added a key, and changed one."""


@pytest.fixture
def submission(tmp_path: Path) -> Submission:
    """A submission of ``CONFIG`` to a cluster of two hosts."""
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>a</name><value>1</value></property>"
        "<property><name>ipc.client.connect.timeout</name><value>9</value></property>"
        "</configuration>"
    )
    (tmp_path / "job.zip").write_bytes(b"")
    return Submission(
        CONFIG, FILE, 3, str(tmp_path / "job.zip"), NodePython.installed("/opt/my python"), tmp_path
    )


@pytest.fixture
def specify(submission: Submission, tmp_path: Path) -> Specify:
    """What is submitted with some keys or parts changed; its files are in ``tmp_path/files``."""

    def specified(keys: Mapping[str, str] = {}, files: str = "files", **parts: Any) -> Any:  # noqa: ANN401 - any part; Skein has no types
        submitted = replace(submission, config=CONFIG.merged(keys), **parts)
        return specification(submitted, tmp_path / files, None, {"HOME": str(tmp_path)})

    return specified


def test_one_service_serves_all_hosts(specify: Specify) -> None:
    """A request names its host; the service has no instance, and Skein restarts none."""
    spec = specify()
    (service,) = spec.services.values()
    assert (service.instances, list(service.nodes), service.relax_locality) == (0, [], False)
    assert (service.allow_failures, service.max_restarts) == (True, 0)
    assert (service.resources.memory, service.resources.vcores) == (700, 2)
    assert service.script.endswith("exec '/opt/my python' -m homeport.container.launcher.launcher")
    assert str(service.files["__package"].type) == "ARCHIVE"
    assert (spec.name, spec.queue, spec.max_attempts) == ("counts_7", "streams", 4)
    assert spec.master.resources.memory == 800


@pytest.mark.parametrize(("given", "threads"), [({}, "2"), ({"OPENBLAS_NUM_THREADS": "7"}, "7")])
def test_openblas_has_the_cores_of_the_container_unless_the_node_sets_it(
    specify: Specify, given: dict[str, str], threads: str
) -> None:
    """By the shell that YARN starts."""
    (service,) = specify().services.values()
    line, program = service.script.splitlines()
    assert program.startswith("exec ")
    shell = ["/bin/bash", "-c", f"{line}\nprintenv OPENBLAS_NUM_THREADS"]
    done = subprocess.run(shell, env=given, capture_output=True, text=True, check=True)
    assert done.stdout == f"{threads}\n"


@pytest.mark.parametrize(("container", "am"), [("", ""), ("state", ""), ("state", "masters")])
def test_labels_are_the_services_and_the_applications(
    specify: Specify, container: str, am: str
) -> None:
    """The AM has the application's; a service without one would have it too."""
    labels = {"yarn.container.label": container, "yarn.am.container.label": am}
    spec = specify({key: label for key, label in labels.items() if label})
    assert spec.node_label == am
    assert {service.node_label for service in spec.services.values()} == {container}


@pytest.mark.parametrize("name", ["group-by-partition", "my.grouping:Tens"])
def test_the_am_has_the_package_where_a_grouper_is_in_it(specify: Specify, name: str) -> None:
    """Only then: the AM makes the JobModel, and needs nothing else of the job's code."""
    spec = specify({"job.systemstreampartition.grouper.factory": name})
    is_own = ":" in name
    assert ("__package" in spec.master.files) is is_own
    path = 'export PYTHONPATH="$PWD/__package${PYTHONPATH:+:$PYTHONPATH}"'
    assert (path in spec.master.script.splitlines()) is is_own
    last = "exec '/opt/my python' -m homeport.appmaster.programs.supervisor"
    assert spec.master.script.splitlines()[-1].removesuffix(" --keeper-spare") == last


@pytest.mark.parametrize(("memory_mb", "has_spare"), [("1024", True), ("1023", False)])
def test_the_keeper_has_a_spare_where_the_am_has_room(
    specify: Specify, memory_mb: str, *, has_spare: bool
) -> None:
    """Its memory is the AM's."""
    spec = specify({"yarn.am.container.memory.mb": memory_mb})
    assert spec.master.script.endswith(" --keeper-spare") is has_spare


def test_an_environment_that_travels_is_localised_once_per_user(specify: Specify) -> None:
    """AM and containers start through it; YARN keeps private files beyond an application."""
    python = NodePython.travelling("hdfs://nn:8020/user/ada/homeport-1.tar.gz", "/opt/start")
    spec = specify(python=python)
    start = "exec /bin/bash __start -m homeport."
    for part in (spec.master, *spec.services.values()):
        file = part.files["__environment"]
        assert (file.source, str(file.type)) == (python.archive, "FILE")
        assert str(file.visibility) == "PRIVATE"
        assert part.files["__start"].source == "file:///opt/start"
        assert part.script.splitlines()[-1].startswith(start)


def test_no_secret_is_in_environment_or_script(specify: Specify, tmp_path: Path) -> None:
    """YARN writes both into logs: token and passwords travel in private files."""
    spec = specify()
    token = (tmp_path / "files" / "homeport-token").read_text()
    assert len(token) >= 32
    stated = [spec.master.script, *spec.master.env.values()]
    for service in spec.services.values():
        stated += [service.script, *service.env.values()]
    assert not any(token in text or "hush" in text for text in stated)
    for name in ("homeport-token", SUBMISSION_FILE_NAME):
        assert stat.S_IMODE((tmp_path / "files" / name).stat().st_mode) == 0o600


def test_with_tls_the_am_alone_gets_the_key(specify: Specify, tmp_path: Path) -> None:
    """The launchers get the certificate; each submission has a new one, and a tag on YARN."""
    made = []
    for name in ("first", "second"):
        files = tmp_path / name
        spec = specify({"cluster-manager.jobcoordinator.tls.enabled": "true"}, name)
        assert {"homeport-key.pem", "homeport-certificate.pem"} <= set(spec.master.files)
        for service in spec.services.values():
            assert "homeport-certificate.pem" in service.files
            assert "homeport-key.pem" not in service.files
        assert stat.S_IMODE((files / "homeport-key.pem").stat().st_mode) == 0o600
        made.append((files / "homeport-certificate.pem").read_text())
        assert HTTPS_TAG in spec.tags
    assert made[0] != made[1]
    plain = specify(files="plain")
    assert not any(name.endswith(".pem") for name in plain.master.files)
    assert HTTPS_TAG not in plain.tags


def test_the_am_gets_the_keys_that_find_the_coordinator_stream(
    specify: Specify, tmp_path: Path
) -> None:
    """The file holds what finds the stream, the number, and what was submitted."""
    specify()
    content = SubmissionFile.from_bytes((tmp_path / "files" / SUBMISSION_FILE_NAME).read_bytes())
    submitted = Submitted(CONFIG, FILE)
    assert content == SubmissionFile(coordinator_part(CONFIG), 3, submitted)
    assert dict(content.config) == {
        "job.name": "counts",
        "job.id": "7",
        "job.coordinator.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "broker:9092",
        "systems.kafka.consumer.sasl.password": "hush",
    }


@pytest.mark.parametrize("data", [b"", b"[]", b'{"config": {}, "submission": 1}', b'{"config": 1}'])
def test_a_damaged_submission_file_is_named(data: bytes) -> None:
    """Whatever is wrong with it, the error says which file it is."""
    with pytest.raises(WireError, match=SUBMISSION_FILE_NAME):
        SubmissionFile.from_bytes(data)


def test_a_job_that_an_older_version_submitted_is_refused() -> None:
    """Its Skein cannot name a host in a request: its containers would go anywhere."""
    body = {"submission": 3, "config": {}, "services": {"nm1": "h-0"}, "submitted": {}, "file": {}}
    with pytest.raises(ConfigError, match="older version") as refused:
        SubmissionFile.from_bytes(json.dumps(body).encode())
    assert "submission 3" in str(refused.value)


def test_the_private_yarn_site_is_a_whole_copy_with_the_tuned_keys(submission: Submission) -> None:
    """It shadows the cluster's file in the AM, so it must hold all of it."""
    root = ET.fromstring(private_yarn_site(submission.hadoop_conf_dir))  # noqa: S314 - our own
    values = {p.findtext("name"): p.findtext("value") for p in root.iter("property")}
    assert values == {"a": "1"} | TUNED_YARN_SITE


def test_the_ams_jvm_finds_names_by_the_hosts_file() -> None:
    """A quarter of the memory is heap; the hosts file is passed on where there is one."""
    assert am_java_options(1024, {}).startswith("-Xmx256m ")
    assert "hosts" not in am_java_options(128, {})
    assert "-Djdk.net.hosts.file=/h" in am_java_options(128, {"HOMEPORT_HOSTS_FILE": "/h"})


def test_places_follow_the_environment(tmp_path: Path) -> None:
    """The cache folder and the token's path by variable, else by default."""
    assert cache_folder({"HOMEPORT_CACHE_DIR": str(tmp_path)}) == tmp_path
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "homeport"
    assert cache_folder({}) == Path.home() / ".cache" / "homeport"
    given = {"HOMEPORT_CACHE_DIR": str(tmp_path)}
    assert token_path(given, "application_1_1") == tmp_path / "tokens" / "application_1_1"
    assert token_path({**given, "HOMEPORT_TOKEN_FILE": "/t"}, "application_1_1") == Path("/t")


def test_a_token_is_forgotten_once(tmp_path: Path) -> None:
    """It is gone afterwards, and that there is none any more is no fault."""
    environment = {"HOMEPORT_CACHE_DIR": str(tmp_path)}
    path = token_path(environment, "application_1_1")
    path.parent.mkdir()
    path.write_bytes(b"secret")
    for _ in range(2):
        forget_token(environment, "application_1_1")
        assert not path.exists()
