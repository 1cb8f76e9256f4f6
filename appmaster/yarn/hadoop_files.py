"""The cluster's file system (HDFS, viewfs or another), by Hadoop's own client in a JVM.

The class path is the ``yarn`` command's, so settings, logins and file systems are those of YARN.
"""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError

from homeport.appmaster.yarn.kerberos import KerberosLogin
from homeport.appmaster.yarn.node_names import HOSTS_FILE_VARIABLE
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.parent_death import run_child

_JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_CLASS_PATH_LIMIT_S = 60.0

Java = Any
"""A value in the JVM: py4j has no types."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """``modified_ms`` since 1970."""

    size: int
    modified_ms: int


class HadoopFiles:
    """Files by URL; a path without scheme is one of the cluster's default file system."""

    def __init__(self, jvm: Java) -> None:
        self._jvm = jvm
        self._configuration = jvm.org.apache.hadoop.conf.Configuration()

    def home(self) -> str:
        """Return the URL of the user's folder, as ``hdfs://namenode:8020/user/ada``."""
        with _one_line("the user's folder"):
            system = self._jvm.org.apache.hadoop.fs.FileSystem.get(self._configuration)
            return str(system.getHomeDirectory().toString())

    def facts(self, url: str) -> FileFacts | None:
        """Return size and time of the file; None where there is none."""
        with _one_line(url):
            system, path = self._at(url)
            if not system.exists(path):
                return None
            status = system.getFileStatus(path)
            return FileFacts(int(status.getLen()), int(status.getModificationTime()))

    def put(self, local: Path, url: str) -> None:
        """Put the whole file at ``url``; make its folders."""
        with _one_line(url):
            system, path = self._at(url)
            system.mkdirs(path.getParent())
            partial = self._path(f"{url}.{uuid.uuid4().hex}")
            system.copyFromLocalFile(False, True, self._path(f"file://{local}"), partial)  # noqa: FBT003 - Java's signature
            if not system.rename(partial, path):  # another client was first, with the same file
                system.delete(partial, False)  # noqa: FBT003 - Java's signature

    def get(self, url: str, local: Path) -> None:
        """Copy the file to ``local``."""
        with _one_line(url):
            system, path = self._at(url)
            system.copyToLocalFile(False, path, self._path(f"file://{local}"), True)  # noqa: FBT003 - Java's signature

    def delete(self, url: str) -> None:
        """Delete the file, or the folder with all that is in it."""
        with _one_line(url):
            system, path = self._at(url)
            system.delete(path, True)  # noqa: FBT003 - Java's signature

    def _at(self, url: str) -> tuple[Java, Java]:
        path = self._path(url)
        return path.getFileSystem(self._configuration), path

    def _path(self, url: str) -> Java:
        return self._jvm.org.apache.hadoop.fs.Path(url)


@contextlib.contextmanager
def hadoop_files(
    environment: Mapping[str, str], login: KerberosLogin | None = None
) -> Iterator[HadoopFiles]:
    """Yield the cluster's files, through a JVM that ends afterwards.

    ``login``: None: with the ticket from ``kinit``, if the cluster has Kerberos.

    UnavailableError: there is no ``yarn`` command or no Java, the JVM does not start, or the keytab
    is refused.
    """
    java = environment.get("JAVA_HOME", "")
    options = [*_JVM_OPTIONS, "-Dlog4j.configuration=none"]
    hosts = environment.get(HOSTS_FILE_VARIABLE, "")
    if hosts:
        options += ["-Djava.net.preferIPv4Stack=true", f"-Djdk.net.hosts.file={hosts}"]
    try:
        port, token, process = launch_gateway(
            classpath=_class_path(environment),
            javaopts=options,
            die_on_exit=True,
            java_path=f"{java}/bin/java" if java else "java",
            enable_auth=True,
            return_proc=True,
        )
    except (OSError, Py4JError, ValueError) as error:
        raise UnavailableError(
            f"Java for the cluster's file system does not start ({error}): let JAVA_HOME name a "
            "JDK 17 or later"
        ) from None
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        if login is not None:
            _log_in(gateway.jvm, login)
        yield HadoopFiles(gateway.jvm)
    finally:
        # Afterwards a Java object that the collector finds is not reported to the JVM.
        gateway.shutdown()
        process.stdin.close()
        process.wait()


def _log_in(jvm: Java, login: KerberosLogin) -> None:
    users = jvm.org.apache.hadoop.security.UserGroupInformation
    try:
        users.setConfiguration(jvm.org.apache.hadoop.conf.Configuration())
        users.loginUserFromKeytab(login.principal, login.keytab)
    except Py4JJavaError as error:
        raise UnavailableError(
            f"Kerberos refuses {login.principal} with the keytab {login.keytab} "
            f"({_reason(error)}): check both, and that the KDC answers"
        ) from None


def _class_path(environment: Mapping[str, str]) -> str:
    yarn = shutil.which("yarn", path=environment.get("PATH"))
    if yarn is None:
        raise UnavailableError("no `yarn` command on PATH: add the bin folder of the Hadoop client")
    command = [yarn, "classpath", "--glob"]
    done = run_child(command, _CLASS_PATH_LIMIT_S, environment=environment)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        lines = said.splitlines() or [f"exit code {done.returncode}"]
        raise UnavailableError(f"`yarn classpath` fails ({lines[-1]}): see the Hadoop client")
    conf = environment.get("HADOOP_CONF_DIR", "")
    return os.pathsep.join(part for part in (conf, os.fsdecode(done.stdout).strip()) if part)


@contextlib.contextmanager
def _one_line(url: str) -> Iterator[None]:
    try:
        yield
    except Py4JError as error:
        raise UnavailableError(f"the cluster's file system, {url}: {_reason(error)}") from None


def _reason(error: Py4JError) -> str:
    is_java = isinstance(error, Py4JJavaError)
    text = str(error.java_exception.toString() if is_java else error)
    return text.splitlines()[0]
