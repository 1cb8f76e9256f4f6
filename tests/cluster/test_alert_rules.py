"""promtool on rules, their tests and the configuration, in the image that Prometheus runs in."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docker_cluster import engine, observability

from local_setup.environment import cache_dir

WRONG = {
    "HomeportJobNotScraped": (
        'up{job="homeport"} == 0\n        for: 2m',
        "up == 0\n        for: 0m",
    ),
    "HomeportContainerNotRunning": (
        "running == 0\n        for: 10m",
        "running == 0\n        for: 5m",
    ),
    "HomeportContainersFailRepeatedly": ("[15m])) >= 3", "[15m])) >= 1"),
    "HomeportInputLost": (" or homeport_input_lost_offsets_total * 0)", ")"),
    "HomeportNoStandbyForFailover": ("any_host_total[15m]) > 0", "any_host_total[15m]) > 9"),
    "HomeportStandbyFallsBehind": ("lag_seconds > 60", "lag_seconds > 600"),
    "HomeportAdjunctBootstrapStuck": (
        "remaining_records offset 10m",
        "remaining_records offset 1m",
    ),
    "HomeportAdjunctVersionLate": ("late_versions > 0", "late_versions > 1"),
    "HomeportAdjunctStoreFallsBehind": (
        "          unless homeport_adjunct_bootstrap_remaining_records\n",
        "",
    ),
    "HomeportCoordinatorStreamUnreachable": (
        "reachable == 0\n        for: 2m",
        "reachable == 0\n        for: 0m",
    ),
}
"""{rule: what makes it sound, and what stands there instead}."""

Promtool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def promtool(containers: None) -> Iterator[Promtool]:
    """Runs it on a folder; an engine that was started for that is stopped."""
    del containers
    cache = cache_dir()

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        options = ["--rm", "--network", "none", "--entrypoint", "promtool"]
        mount = ["--volume", f"{folder}:/rules:ro", "--workdir", "/rules"]
        return found.call("run", *options, *mount, image, *arguments, limit_s=60)

    with engine.in_use(cache):
        found = engine.ensure(cache, print)
        image = observability.ensure_prometheus(found, cache, print)
        yield run
    engine.stop_own(cache, print)


def test_compose_takes_the_file_by_which_users_start_it(containers: str) -> None:
    """Version 1 too, which Debian has."""
    del containers
    command = [*engine.Engine("").compose(), "-f", "compose.yaml", "config", "-q"]
    done = subprocess.run(
        command, cwd=observability.FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_is_one_that_prometheus_takes(promtool: Promtool) -> None:
    """With all its rules."""
    done = promtool(observability.FOLDER, "check", "config", "prometheus.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(WRONG)} rules found" in done.stdout


def test_each_rule_fires_for_its_reason_and_not_in_calm(promtool: Promtool) -> None:
    """alerts.test.yaml has both for each of them."""
    done = promtool(observability.FOLDER, "test", "rules", "alerts.test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_rule_that_is_wrong_is_noticed(promtool: Promtool, tmp_path: Path) -> None:
    """Each rule: the tests of the rules can fail."""
    for path in observability.FOLDER.glob("alerts*.yaml"):
        text = path.read_text(encoding="utf-8")
        for sound, broken in WRONG.values() if path.name == "alerts.yaml" else ():
            assert text.count(sound) == 1
            text = text.replace(sound, broken)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    done = promtool(tmp_path, "test", "rules", "alerts.test.yaml")
    assert done.returncode == 1
    noticed = re.findall(r"alertname: *(\w+)", done.stdout + done.stderr)
    assert set(noticed) == WRONG.keys()
