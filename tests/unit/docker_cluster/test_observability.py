"""Dashboard and alert rules name metrics that the product serves; compose and Grafana agree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from docker_cluster import observability
from prometheus_client.core import Metric

from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.report.allocator_metrics import AllocatorMetrics
from homeport.job_coordinator.http.metrics import JobCoordinatorMetrics
from homeport.job_coordinator.status.shape import ShownStatus
from tests.unit.appmaster.allocation.conftest import SETTINGS

_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
_NAME = re.compile(r"\b(?:homeport|samza)_\w+|\bup\b")
_TARGET_LABELS = {"job", "job_name", "job_id", "application"}


def _families() -> Iterator[Metric]:
    yield from JobCoordinatorMetrics(ShownStatus).collect()
    yield from AllocatorMetrics().collect(AllocatorState(SETTINGS))


def _served() -> dict[str, set[str]]:
    """{series of GET /metrics: its labels}; of ``up``, which is Prometheus' own, a target's."""
    found: dict[str, set[str]] = {"up": set()}
    for family in _families():
        for suffix in _SUFFIXES[family.type]:
            own = getattr(family, "_labelnames", ())
            found[family.name + suffix] = {*own, *(["le"] if suffix == "_bucket" else [])}
    return found


def _dashboard() -> dict[str, Any]:
    path = observability.FOLDER / "dashboard.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _rules() -> list[dict[str, Any]]:
    text = (observability.FOLDER / "alerts.yaml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = yaml.safe_load(text)["groups"][0]["rules"]
    return found


def _expressions() -> dict[str, tuple[str, str]]:
    """{panel or rule: its expression, and the text that shows its labels}."""
    found = {
        f"{panel['title']} {target['refId']}": (target["expr"], target["legendFormat"])
        for panel in _dashboard()["panels"]
        for target in panel["targets"]
    }
    for rule in _rules():
        shown = "".join(rule["annotations"].values()).replace("$labels.", "")
        found[rule["alert"]] = (rule["expr"], shown)
    return found


@pytest.mark.parametrize("place", _expressions())
def test_an_expression_names_series_and_labels_that_are_served(place: str) -> None:
    """A metric that is renamed would leave a panel empty, and a rule that never fires."""
    expression, shown = _expressions()[place]
    names, served = set(_NAME.findall(expression)), _served()
    assert names
    assert names - served.keys() == set()
    labels = _TARGET_LABELS.union(*(served[name] for name in names))
    used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\"", expression))
    for group in re.findall(r"(?:by|without) \(([^)]*)\)", expression):
        used |= {label.strip() for label in group.split(",")}
    used |= set(re.findall(r"{{ ?(\w+) ?}}", shown))
    assert used - labels == set()


def test_a_rule_says_what_to_do_next() -> None:
    """Five rules and more: severity, summary, and a command of this project."""
    rules = _rules()
    assert len(rules) >= 5
    for rule in rules:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "description"}
        next_step = rule["annotations"]["description"].partition("Next")[2]
        assert re.search(r": (homeport|run-job) .*--config-path=JOB.properties", next_step)


def test_each_rule_is_fired_by_promtool_and_shown_calm() -> None:
    """A rule without a test of both kinds would not be noticed by promtool."""
    text = (observability.FOLDER / "alerts.test.yaml").read_text(encoding="utf-8")
    checks = [c for test in yaml.safe_load(text)["tests"] for c in test["alert_rule_test"]]
    fired = {c["alertname"] for c in checks if c.get("exp_alerts")}
    calm = {c["alertname"] for c in checks if not c.get("exp_alerts")}
    assert fired == calm == {rule["alert"] for rule in _rules()}


def test_panels_use_the_source_that_grafana_is_given() -> None:
    """By its uid."""
    text = (observability.FOLDER / "grafana" / "datasource.yaml").read_text(encoding="utf-8")
    (source,) = yaml.safe_load(text)["datasources"]
    dashboard = _dashboard()
    used = [*dashboard["panels"], *dashboard["templating"]["list"]]
    assert {part["datasource"]["uid"] for part in used} == {source["uid"]}


def test_compose_starts_them_by_profile_on_loopback_alone() -> None:
    """Without the profile the cluster is as it was."""
    text = (observability.FOLDER.parent / "compose.yaml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    named = {s for s, body in services.items() if "profiles" in body}
    assert named == set(observability.SERVICES)
    for service in named:
        assert services[service]["profiles"] == [observability.PROFILE]
        assert all(p.startswith("127.0.0.1:") for p in services[service].get("ports", ()))
