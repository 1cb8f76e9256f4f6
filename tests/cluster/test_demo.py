"""The demonstration on a cluster in containers, as its user runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

from docker_cluster import engine

from local_setup.environment import cache_dir

ROOT = Path(__file__).resolve().parents[2]
_LIMIT_S = 1500


def test_a_host_without_our_packages_is_cut_off_and_the_result_is_exact(containers: None) -> None:
    """Hosts have Java and Python alone: homeport comes with the job.

    A host with an active container is cut off in mid-run: the container ends by its lease, and its
    standby takes its place. Afterwards nothing of the cluster is left.
    """
    del containers
    command = [str(ROOT / "docker" / "demo"), "--fail-host"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
    ) as child:
        try:
            output, _ = child.communicate(timeout=_LIMIT_S)
        except BaseException:
            # It removes its cluster, which takes seconds.
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(120)
            raise
    assert child.returncode == 0, output
    verdicts = re.findall(r"^  (held|FAILED)  (.*)$", output, re.MULTILINE)
    assert {verdict for verdict, _ in verdicts} == {"held"}
    texts = "\n".join(text for _, text in verdicts)
    for part in (
        "cut off, ended by its lease after",
        "took its standby's place and read only the changelog's tail",
        "planes are exactly right (0 differ)",
        "the history of all nodes is sound",
    ):
        assert part in texts
    found = engine.find(cache_dir())
    if found is not None:
        listed = found.run("ps", "-aq", "--filter", "label=com.docker.compose.project")
        assert listed.strip() == ""
