"""Whether a JVM starts with the options that a job gives it."""

from __future__ import annotations

import os
import shlex
import tempfile

from homeport.config.declarations.all_keys import TASK_SPARK_CONF
from homeport.config.errors import ConfigError
from homeport.container.spark.jvm import java_of_host, lasting_flags, options_file
from homeport.job_coordinator.parent_death import run_child

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_HEADING = "Error occurred during initialization of VM"
_LIMIT_S = 30.0


def require_taken(own: str) -> None:
    """A JVM of this machine starts with the job's own options beside ours.

    Where this machine has no Java nothing is known. The options reach the JVM by a file, as one may
    hold a secret.

    Raises:
        ConfigError: it does not; the line has the JVM's own reason.
    """
    java = java_of_host()
    try:
        shlex.split(own)
    except ValueError as error:
        raise _refusal(own, str(error)) from None
    if java is None:
        return
    with tempfile.NamedTemporaryFile("w", prefix="homeport-java-", encoding="utf-8") as options:
        options.write(options_file({JAVA_OPTIONS: f"{lasting_flags(own)} {own}"}))
        options.flush()
        command = [java, f"@{options.name}", "-version"]
        done = run_child(command, _LIMIT_S, environment=_environment())
    if done.returncode != 0:
        # It says some things on its standard output, and the reason after a heading.
        said = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
        reasons = [line for line in said if line and line != _HEADING]
        raise _refusal(own, reasons[0] if reasons else f"exit code {done.returncode}")


def _environment() -> dict[str, str]:
    """Without what would add options of this shell, which the containers do not have."""
    added = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
    return {name: value for name, value in os.environ.items() if name not in added}


def _refusal(own: str, reason: str) -> ConfigError:
    return ConfigError(
        TASK_SPARK_CONF.named(JAVA_OPTIONS),
        own,
        f"Java must take these options ({reason.removeprefix('Error: ')})",
        "correct them",
    )
