"""Checks that each node can run a container of a job. PURE.

A node's answer is the output of ``PROBE_SCRIPT``: lines ``name=value``, and ``end=1`` at the end.
"""

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from homeport.appmaster.doctor.finding import Check, Finding
from homeport.config.needed_java import LEAST_JAVA, java_major
from homeport.config.number_text import whole_of

PROBE_SCRIPT = """\
base="${LOGGED_STORE_BASE_DIR:-$HOMEPORT_LOGGED_STORE_BASE_DIR}"
echo "base=$base"
echo "variable=${LOGGED_STORE_BASE_DIR:+1}"
if [ -n "$base" ]; then
  [ -d "$base" ] && echo "exists=1" && echo "mode=$(stat -L -c %a "$base" 2>/dev/null)"
  [ "$(stat -L -c %G "$base" 2>/dev/null)" = "$(id -un)" ] && echo "own_group=1"
  there="$base"
  while [ ! -e "$there" ] && [ "$there" != / ] && [ "$there" != . ]; do
    there="$(dirname "$there")"
  done
  if made="$(mktemp "$there/.homeport-doctor.XXXXXXXX" 2>/dev/null)"; then
    rm -f "$made"
    echo "writable=1"
  fi
  echo "free_kb=$(df -Pk "$there" | awk 'NR == 2 { print $4 }')"
fi
python="${HOMEPORT_PROBED_PYTHON:-python3}"
echo "python=$python"
say() { "$python" -c "$1" 2>/dev/null; }
echo "python_version=$(say 'import sys; print("%d.%d" % sys.version_info[:2])')"
echo "homeport=$(say 'import homeport.container; print(1)')"
java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
echo "java=$java"
echo "java_version=$("$java" -version 2>&1 | grep -m 1 version)"
echo "end=1"
"""
"""It needs no Python on the node, and leaves no file there."""

_MB = 1024


@dataclass(frozen=True, slots=True)
class NodeNeeds:
    """A job's needs on each node.

    ``python``: the interpreter with homeport; None: the job ships an environment, and the node
    needs only a Python 3.11. ``has_pipeline``: Spark runs there. ``free_mb``: the space that the
    disk of the state must have free.
    """

    python: str | None
    has_pipeline: bool
    has_state: bool
    free_mb: int


def answer_of(text: str) -> dict[str, str] | None:
    """Return {name: value} in the output of a probe; None: the probe has not ended."""
    pairs = (line.partition("=") for line in text.splitlines())
    found = {name: value for name, sign, value in pairs if sign}
    return found if found.get("end") == "1" else None


def check_node(host: str, answer: Mapping[str, str] | None, needs: NodeNeeds) -> Iterator[Finding]:
    """Check a node by ``answer``, from ``answer_of``; None: it ran no probe in time."""
    if answer is None:
        yield Check("node.probe", host).unknown(
            "ran no probe in time: it may have no room, or be slow"
        )
        return
    if needs.has_state:
        yield from _state(host, answer, needs)
    yield from _python(host, answer, needs)
    if needs.has_pipeline:
        yield from _java(host, answer)


def _state(host: str, answer: Mapping[str, str], needs: NodeNeeds) -> Iterator[Finding]:
    base = answer.get("base", "")
    state = Check("node.state", host)
    if not base:
        yield state.error(
            "LOGGED_STORE_BASE_DIR is not set there, nor job.logged.store.base.dir: state is in "
            "the container's own folder, which YARN removes with the container",
            "set LOGGED_STORE_BASE_DIR for the NodeManager (yarn.nodemanager.admin-env), or "
            "job.logged.store.base.dir in the job's file",
        )
        return
    if answer.get("writable") != "1":
        what = "cannot be written" if answer.get("exists") == "1" else "cannot be made"
        yield state.error(
            f"{base} {what} by the user of YARN's containers",
            f"make {base} there, writable for that user",
        )
        return
    mode = int(answer.get("mode") or "0", 8)
    others = stat.S_IWOTH if answer.get("own_group") else stat.S_IWOTH | stat.S_IWGRP
    if mode & others and not mode & stat.S_ISVTX:
        yield state.error(
            f"{base} has mode {mode:04o}: other users can exchange what one has there",
            f"chmod +t {base} there, or let no other user write",
        )
        return
    free_mb = _number(answer.get("free_kb")) // _MB
    if free_mb < needs.free_mb:
        yield state.warning(
            f"{base} has {free_mb} MB free of the {needs.free_mb} MB wanted",
            f"free {needs.free_mb - free_mb} MB, or let LOGGED_STORE_BASE_DIR name a larger disk",
        )
    else:
        yield state.ok(f"{base} is writable, {free_mb} MB free")


def _python(host: str, answer: Mapping[str, str], needs: NodeNeeds) -> Iterator[Finding]:
    version, path = answer.get("python_version", ""), answer.get("python", "")
    python = Check("node.python", host)
    if not version:
        yield python.error(
            f"{path} cannot be run",
            "install Python 3.11 there, or let yarn.python.executable name one",
        )
    elif needs.python is not None and answer.get("homeport") != "1":
        yield python.error(
            f"{path} (Python {version}) has no homeport",
            "install homeport for it there, or let the environment travel (yarn.python.archive)",
        )
    else:
        yield python.ok(f"{path}, Python {version}")


def _java(host: str, answer: Mapping[str, str]) -> Iterator[Finding]:
    major = java_major(answer.get("java_version", ""))
    java = Check("node.java", host)
    if major is None or major < LEAST_JAVA:
        shown = "cannot be run" if major is None else f"is Java {major}"
        yield java.error(
            f"{answer.get('java', 'java')} {shown}, and the job has a pipeline",
            f"install a JDK {LEAST_JAVA} there, and set JAVA_HOME for the NodeManager",
        )
    else:
        yield java.ok(f"Java {major}")


def _number(text: str | None) -> int:
    try:
        return max(0, whole_of(text or ""))
    except ValueError:
        return 0
