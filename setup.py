"""Build the parts of the wheel that ``setup.cfg`` cannot declare.

The classes for Spark's JVM are compiled into the wheel, by the compiler that Spark has. So the
build requires pyspark where there is a Java. Elsewhere the wheel has no classes, and the first
start of Spark compiles them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_PROGRAM = "homeport.container.spark.java_classes"
_LINK = re.compile(r"\[([^]]+)\]\((?!https?://)[^)]+\)")
_PYSPARK = re.compile(r"^ +pyspark *(==\S+)$", re.MULTILINE)


class BuildWithClasses(build_py):
    """Build the packages, and the jar of the classes for Spark's JVM."""

    def run(self) -> None:
        """Build both; without Java, warn that the wheel has no jar."""
        super().run()
        if self.editable_mode:
            return
        built = Path(self.build_lib).absolute()
        target = built.joinpath(*_PROGRAM.split(".")[:-1])
        for former in target.glob("homeport-spark-*.jar"):
            former.unlink()
        path = os.pathsep.join([str(built), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", _PROGRAM, str(target)]
        if subprocess.run(command, env=environment, check=False).returncode != 0:
            self.warn("the wheel has no Java classes: Spark's first start compiles them")


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(f"{home}/bin/java" if home else "java")


def _requirements() -> list[str]:
    (version,) = _PYSPARK.findall(Path("setup.cfg").read_text(encoding="utf-8"))
    return [f"pyspark{version}"] if _java() else []


def _description() -> str:
    """Return README without its links: of pages, which a page of an index has not."""
    return _LINK.sub(r"\1", Path("README.md").read_text(encoding="utf-8"))


setup(
    cmdclass={"build_py": BuildWithClasses},
    setup_requires=_requirements(),
    long_description=_description(),
    long_description_content_type="text/markdown",
)
