"""The Java classes of ``container/spark/java``, compiled for Spark's JVM.

``python -m homeport.container.spark.java_classes FOLDER``: afterwards the folder has them as one
jar, named by their sources. Janino compiles them, which Spark has for its own code: a Java without
a compiler is enough, and nothing is downloaded. The jar fits only this pyspark, in any folder.

The build of the wheel puts the jar beside this module. Where it had no Java, the first start of
Spark makes the jar in the cache folder.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeport.config.errors import HomeportError, StoreError
from homeport.container.spark.jvm import JVM_FLAGS, spark_and_java
from homeport.job_coordinator.own_folders import cache_folder, make_own_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)

_SHIPPED = Path(__file__).parent
_SOURCES = _SHIPPED / "java"
_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of each entry, so that the same sources make the same jar."""


def jar_name() -> str:
    """Return the name of the jar of these sources, compiled against this environment's pyspark.

    An upgraded pyspark has another name: else Java would find a misfit only at a batch.
    """
    digest = hashlib.sha256(_pyspark_version().encode())
    for source in _sources():
        digest.update(f"{source.name}\n".encode() + source.read_bytes())
    return f"homeport-spark-{digest.hexdigest()[:16]}.jar"


def _pyspark_version() -> str:
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return ""


def load(session: SparkSession) -> None:
    """Load the classes into Spark's JVM; make the jar where neither wheel nor cache has it.

    Raises:
        HomeportError: it cannot be made.
    """
    jvm: Any = session._jvm  # noqa: SLF001 - pyspark's only way to the JVM
    jar = _SHIPPED / jar_name()
    if not jar.is_file():
        jar = _cached(Path(jvm.java.lang.System.getProperty("java.io.tmpdir")))
    jvm.PythonSQLUtils.addJarToCurrentClassLoader(jar.absolute().as_uri())


def _cached(scratch: Path) -> Path:
    """Return the jar in the cache folder, or, where this user has none, in ``scratch``."""
    try:
        cache = cache_folder(os.environ)
        make_own_folder(cache / "spark", cache)
        return make(cache / "spark")
    except (OSError, RuntimeError, StoreError) as error:  # the second: this user has no home
        _LOG.info("Spark's Java classes cannot be kept (%s)", error)
        return make(scratch)


def make(folder: Path) -> Path:
    """Return the jar in ``folder``; make it if it is not there.

    Raises:
        HomeportError: there is no Java, no pyspark, or a source is wrong.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jar = folder / jar_name()
    if jar.is_file():
        return jar
    _LOG.info("compiling Spark's Java classes into %s (once)", folder)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder) as name:
        classes, partial = Path(name) / "classes", Path(name) / "jar"
        classes.mkdir()
        _compile(classes)
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(classes.rglob("*.class")):
                entry = zipfile.ZipInfo(path.relative_to(classes).as_posix(), _DATE)
                archive.writestr(entry, path.read_bytes())
        partial.replace(jar)
    return jar


def _sources() -> list[Path]:
    return sorted(_SOURCES.glob("*.java"))


def _compile(target: Path) -> None:
    from py4j.java_gateway import JavaGateway  # noqa: PLC0415 - only where classes are made
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - as above

    home, java = spark_and_java()
    jars = home / "jars"
    used = sorted(jars.glob("*.jar"))
    try:
        gateway = JavaGateway.launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=os.pathsep.join(map(str, used)),
            javaopts=JVM_FLAGS.split(),
            java_path=java,
            die_on_exit=True,
            enable_auth=True,
        )
    except Py4JError as error:
        raise HomeportError(f"Java does not start for Spark's classes: {error}") from None
    try:
        compiler = gateway.jvm.org.codehaus.janino.Compiler()
        compiler.setDestinationDirectory(_files(gateway, [target])[0], False)  # noqa: FBT003 - Java's
        compiler.setClassPath(_files(gateway, used))
        compiler.compile(_files(gateway, _sources()))
    except Py4JJavaError as error:
        reason = error.java_exception.getMessage()
        raise HomeportError(f"Spark's Java classes do not compile: {reason}") from None
    finally:
        gateway.shutdown()


def _files(gateway: Any, paths: list[Path]) -> Any:  # noqa: ANN401 - objects of Java
    files = gateway.new_array(gateway.jvm.java.io.File, len(paths))
    for index, path in enumerate(paths):
        files[index] = gateway.jvm.java.io.File(str(path))
    return files


def main(make: Callable[[Path], object]) -> int:
    """Call ``make`` with the folder of the first argument; return the exit code."""
    try:
        make(Path(sys.argv[1]).absolute())
    except (HomeportError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(make))
