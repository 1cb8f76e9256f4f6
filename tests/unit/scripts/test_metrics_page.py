"""The page of all metrics: each family has its row, and each alert is at the series it reads."""

from __future__ import annotations

import re

import pytest
import yaml
from docker_cluster import observability

from pages_check import metrics_page

ROWS = {
    line.split("`")[1]: line for line in metrics_page.page().splitlines() if line.startswith("| `")
}


def test_each_family_has_one_row_with_its_type_and_labels() -> None:
    """Counters by the name of their series."""
    families = [f for found in metrics_page.families().values() for f in found]
    assert len(families) == len(ROWS)
    assert "| counter | `processor`, `stage` |" in ROWS["homeport_stage_seconds_total"]
    assert "| histogram | `cause` |" in ROWS["homeport_recovery_seconds"]
    assert all(row.split(" | ")[3].strip() for row in ROWS.values()), "a metric without a meaning"


@pytest.mark.parametrize(
    "rule",
    yaml.safe_load((observability.FOLDER / "alerts.yaml").read_text())["groups"][0]["rules"],
    ids=lambda rule: str(rule["alert"]),
)
def test_each_alert_stands_at_the_metrics_it_reads(rule: dict[str, str]) -> None:
    """Of every series of its expression that is ours."""
    series = set(re.findall(r"\b(?:homeport|samza)_\w+", rule["expr"]))
    for name in series:
        assert f"`{rule['alert']}`" in ROWS[name]
