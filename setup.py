"""Build the parts of the wheel that ``setup.cfg`` cannot declare.

The classes for Spark's JVM are compiled into the wheel, by the compiler that Spark has. So the
build requires pyspark where there is a Java. Elsewhere the wheel has no classes, and the first
start of Spark compiles them.

The library of C++ is compiled into the wheel where a compiler is, and the wheel is then of this
kind of machine. Elsewhere containers read their input in Python alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

_CLASSES = "homeport.container.spark.java_classes"
_LIBRARY = "homeport.container.native.library"
_LINK = re.compile(r"\[([^]]+)\]\((?!https?://)[^)]+\)")
_PYSPARK = re.compile(r"^ +pyspark *(==\S+)$", re.MULTILINE)


class BuildWithBoth(build_py):
    """Build the packages, the jar of the classes for Spark's JVM, and the library of C++."""

    def run(self) -> None:
        """Build all; warn of what the wheel lacks without Java, or without a C++ compiler."""
        super().run()
        if self.editable_mode:
            return
        if not self._made(_CLASSES, "homeport-spark-*.jar"):
            self.warn("the wheel has no Java classes: Spark's first start compiles them")
        if not self._made(_LIBRARY, "homeport-*.so.1"):
            self.warn("the wheel has no library of C++: reading input takes more CPU")

    def _made(self, program: str, former: str) -> bool:
        built = Path(self.build_lib).absolute()
        target = built.joinpath(*program.split(".")[:-1])
        for file in target.glob(former):
            file.unlink()
        path = os.pathsep.join([str(built), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", program, str(target)]
        return subprocess.run(command, env=environment, check=False).returncode == 0


class WheelOfMachine(bdist_wheel):
    """Name the wheel by the machine where it has the library, which is of no Python version."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag: of any machine without the library."""
        has_library = any(Path(self.bdist_dir).glob("homeport/container/native/*.so.1"))
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        return "py3", "none", platform if has_library else "any"


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
    cmdclass={"build_py": BuildWithBoth, "bdist_wheel": WheelOfMachine},
    setup_requires=_requirements(),
    long_description=_description(),
    long_description_content_type="text/markdown",
)
