"""Submits a job as a Skein application: its specification and its files.

There is one service, without an instance until the driver adds one. Each request names its host, or
none (``skein_jar``).
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from homeport.appmaster.yarn.job_package import PACKAGE_NAME
from homeport.appmaster.yarn.node_names import HOSTS_FILE_VARIABLE
from homeport.appmaster.yarn.resource_manager_rest import (
    APPLICATION_TAG,
    HTTPS_TAG,
    JOB_TAG_PREFIX,
    ResourceManagerRest,
    read_hadoop_files,
)
from homeport.appmaster.yarn.skein_driver import Skein, SkeinDriver, import_skein, one_line
from homeport.appmaster.yarn.submission_file import (
    SUBMISSION_FILE_NAME,
    SubmissionFile,
    Submitted,
    coordinator_part,
)
from homeport.config.config import Config
from homeport.config.settings.log_section import LogConfig
from homeport.config.settings.sections import ClusterManagerConfig, JobConfig, YarnConfig
from homeport.job_coordinator.access.served_access import make_certificate
from homeport.job_coordinator.client_files import KeptToken, token_folder
from homeport.job_coordinator.grouper.factories import has_own_grouper
from homeport.job_coordinator.http.messages import TOKEN_FILE_NAME
from homeport.job_coordinator.http.pinned_tls import (
    CERTIFICATE_FILE_NAME,
    KEY_FILE_NAME,
    SECRET_FILE_NAME,
)
from homeport.job_coordinator.model.incarnation import job_identity
from homeport.job_coordinator.private_files import PrivateFolder, private_folder
from homeport.job_coordinator.python_environment import BLAS_VARIABLE

SERVICE = "container"
"""The only service; also the stem of its containers' names."""
_ENVIRONMENT_NAME = "__environment"
_START_NAME = "__start"

TUNED_YARN_SITE = {
    # Half of it is how often Skein's AM talks to the ResourceManager: 0.2 s instead of 5 s.
    "yarn.am.liveness-monitor.expiry-interval-ms": "400",
    # A node that is gone must not hold up the containers of the others.
    "yarn.client.nodemanager-connect.max-wait-ms": "2000",
    "yarn.client.nodemanager-connect.retry-interval-ms": "1000",
    # Nor one that stands still: it takes a connection and never answers, for a minute otherwise.
    "yarn.rpc.nm-command-timeout": "10000",
    "ipc.client.connect.timeout": "2000",
    "ipc.client.connect.max.retries.on.timeouts": "1",
}
"""Settings of the AM's own yarn-site.xml, beside the cluster's; only the AM reads that file."""

_AM_JAVA_OPTIONS = (
    "-Xms32m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData "
    # Netty's buffers: by 512 KB, not by 16 MB for each thread that serves.
    "-Dcom.anaconda.skein.shaded.io.netty.allocator.maxOrder=6 "
    "--add-opens=java.base/java.util=ALL-UNNAMED"  # Skein's web page needs it
)
_MIN_AM_HEAP_MB = 96
_WITH_SPARE = " --keeper-spare"
_SPARE_LEAST_MB = 1024
"""The least AM memory in which a spare of the keeper, about 50 MB, has room."""
_WITH_PACKAGE = f'export PYTHONPATH="$PWD/{PACKAGE_NAME}${{PYTHONPATH:+:$PYTHONPATH}}"\n'


def application_name(config: Config) -> str:
    """Return the name of the job on YARN: ``<job.name>_<job.id>``, as in Samza."""
    job = JobConfig.of(config)
    return f"{job.name}_{job.id}"


def job_tag(config: Config) -> str:
    """Return the tag of this job's applications alone: names on YARN are not unique.

    YARN writes tags in lower case, with at most 100 characters, hence a digest (safety K3).
    """
    job = JobConfig.of(config)
    identity = job_identity(job.name, job.id).encode()
    return f"{JOB_TAG_PREFIX}{hashlib.sha256(identity).hexdigest()}"


def private_yarn_site(hadoop_conf_dir: Path) -> bytes:
    """Return a copy of the client's yarn-site.xml with ``TUNED_YARN_SITE`` laid over it."""
    values = read_hadoop_files(hadoop_conf_dir, ("yarn-site.xml",)) | TUNED_YARN_SITE
    root = ET.Element("configuration")
    for key, value in sorted(values.items()):
        entry = ET.SubElement(root, "property")
        ET.SubElement(entry, "name").text = key
        ET.SubElement(entry, "value").text = value
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


@dataclass(frozen=True, slots=True)
class NodePython:
    """The Python of the job's processes on a node.

    ``command``: the shell words that start it. ``archive``: path or URL of the environment that
    travels; ``start``: the program that unpacks it on a node; None: every node has it.
    """

    command: str
    archive: str | None = None
    start: str | None = None

    @staticmethod
    def installed(python: str) -> NodePython:
        """Return the interpreter at this path of every node."""
        return NodePython(shlex.quote(python))

    @staticmethod
    def travelling(archive: str, start: str) -> NodePython:
        """Return the environment in this archive; ``start`` finds an interpreter on the node."""
        return NodePython(f"/bin/bash {_START_NAME}", archive, start)


@dataclass(frozen=True)
class Submission:
    """The values of one submission.

    ``file``: the configuration without keys that coordinator-stream-writer set. ``package``: path
    or URL of the archive with the job's code.
    """

    config: Config
    file: Config
    number: int
    package: str
    python: NodePython
    hadoop_conf_dir: Path


def am_java_options(memory_mb: int, environment: Mapping[str, str]) -> str:
    """Return the AM's JVM options: a quarter of the memory is heap, where the driver lives."""
    options = f"-Xmx{max(_MIN_AM_HEAP_MB, memory_mb // 4)}m {_AM_JAVA_OPTIONS}"
    hosts_file = environment.get(HOSTS_FILE_VARIABLE, "")
    if hosts_file:
        options += f" -Djava.net.preferIPv4Stack=true -Djdk.net.hosts.file={hosts_file}"
    return options


def threads_line(cores: int) -> str:
    """Return the shell's line that gives OpenBLAS the container's cores; a node's value stands.

    By itself it starts a thread for each core of the host, in each process that imports numpy.
    """
    return f'export {BLAS_VARIABLE}="${{{BLAS_VARIABLE}:-{cores}}}"'


def specification(
    submission: Submission, files: Path, security: object, environment: Mapping[str, str]
) -> Skein:
    """Write the application's private files into ``files``; return its specification."""
    skein = import_skein(environment)
    config = submission.config
    yarn, manager = YarnConfig.of(config), ClusterManagerConfig.of(config)
    submitted = Submitted(config, submission.file)
    content = SubmissionFile(coordinator_part(config), submission.number, submitted)
    with private_folder(files) as own:
        own.write(SUBMISSION_FILE_NAME, content.to_bytes())
        own.write(TOKEN_FILE_NAME, secrets.token_urlsafe(32).encode())
        own.write(SECRET_FILE_NAME, secrets.token_bytes(32))
        trusted = _write_certificate(config, own)
    (files / "yarn-site.xml").write_bytes(private_yarn_site(submission.hadoop_conf_dir))
    # Of these, the launchers have the token, the secret and the certificate alone.
    shared = (TOKEN_FILE_NAME, SECRET_FILE_NAME, *trusted)
    names = (*shared, SUBMISSION_FILE_NAME, "yarn-site.xml")
    private = {name: skein.File(str(files / name), type="FILE") for name in names}
    package = skein.File(submission.package, type="ARCHIVE")
    travels = _environment_of(submission.python, environment)

    service = skein.Service(
        instances=0,
        relax_locality=False,  # of a request that names its host
        node_label=yarn.container_label or "",
        resources=skein.Resources(
            memory=manager.container_memory_mb, vcores=manager.container_cpu_cores
        ),
        files={
            **{n: private[n] for n in shared if n != KEY_FILE_NAME},
            PACKAGE_NAME: package,
            **travels,
        },
        env={"PYTHONUNBUFFERED": "1"},
        script=(
            f"{threads_line(manager.container_cpu_cores)}\n"
            f"exec {submission.python.command} -m homeport.container.launcher.launcher"
        ),
        allow_failures=True,
        max_restarts=0,
    )
    return skein.ApplicationSpec(
        name=application_name(config),
        queue=yarn.queue,
        node_label=yarn.am_label or "",  # of the AM; the service has its own
        tags={APPLICATION_TAG, job_tag(config), *([HTTPS_TAG] if manager.has_tls else [])},
        max_attempts=yarn.am_max_attempts,
        master=_master(submission, {**private, **travels}, package, security, environment),
        services={SERVICE: service},
    )


def _write_certificate(config: Config, own: PrivateFolder) -> tuple[str, ...]:
    if not ClusterManagerConfig.of(config).has_tls:
        return ()
    certificate, key = make_certificate(application_name(config))
    own.write(CERTIFICATE_FILE_NAME, certificate)
    own.write(KEY_FILE_NAME, key)
    return CERTIFICATE_FILE_NAME, KEY_FILE_NAME


def _environment_of(python: NodePython, environment: Mapping[str, str]) -> dict[str, object]:
    """Return the files of an environment that travels; the user's applications share them.

    YARN does not unpack them: without Hadoop's native library, it would start a process for the
    mode of each of ten thousand files.
    """
    if python.archive is None or python.start is None:
        return {}
    skein = import_skein(environment)
    return {
        _ENVIRONMENT_NAME: skein.File(python.archive, type="FILE", visibility="PRIVATE"),
        _START_NAME: skein.File(python.start, type="FILE"),
    }


def _master(
    submission: Submission,
    private: Mapping[str, object],
    package: object,
    security: object,
    environment: Mapping[str, str],
) -> object:
    """Return the AM's container: supervisor, driver and lease keeper beside Skein's JVM."""
    skein = import_skein(environment)
    yarn = YarnConfig.of(submission.config)
    # The AM groups: a grouper of the job's own is in the job's package.
    with_package = has_own_grouper(submission.config)
    return skein.Master(
        resources=skein.Resources(memory=yarn.am_memory_mb, vcores=yarn.am_cpu_cores),
        files={**private, **({PACKAGE_NAME: package} if with_package else {})},
        # HOMEPORT_HOSTS_FILE comes from the node: given twice, YARN would join the two by a colon.
        env={
            "PYTHONUNBUFFERED": "1",
            **LogConfig.of(submission.config).variables(),
            "_JAVA_OPTIONS": am_java_options(yarn.am_memory_mb, environment),
        },
        # Any JVM below the driver would take the variable too, and say so on its standard error.
        script=(
            f"unset _JAVA_OPTIONS\n{_WITH_PACKAGE if with_package else ''}"
            f"exec {submission.python.command} -m homeport.appmaster.programs.supervisor"
            f"{_WITH_SPARE if yarn.am_memory_mb >= _SPARE_LEAST_MB else ''}"
        ),
        security=security,
    )


def submit(submission: Submission, driver: SkeinDriver, environment: Mapping[str, str]) -> str:
    """Submit the application, keep its token at ``token_path``, and return its id.

    UnavailableError: as for ``private_folder``, or YARN does not take it.
    """
    with contextlib.ExitStack() as stack:
        # Before anything runs: a job whose token cannot be kept could not be stopped in order.
        tokens = stack.enter_context(private_folder(token_folder(environment)))
        made = tempfile.TemporaryDirectory(prefix="homeport-submission-")
        files = Path(stack.enter_context(made))
        spec = specification(submission, files, driver.security, environment)
        with one_line(import_skein(environment), driver.log):
            application_id = str(driver.client.submit(spec))
        conf = submission.hadoop_conf_dir
        urls = ResourceManagerRest.from_folder(conf).urls
        kept = KeptToken(application_id, str(conf.resolve()), urls)
        tokens.write(application_id, (files / TOKEN_FILE_NAME).read_bytes())
        tokens.write(kept.note_name, kept.note())
        tokens.write(kept.secret_name, (files / SECRET_FILE_NAME).read_bytes())
    return application_id
