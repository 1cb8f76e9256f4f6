"""``homeport doctor``: what one machine lacks is one finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.appmaster.doctor.finding import Level
from homeport.cli.yarn.doctor_areas import Area, NodeQuestion, findings


def test_a_machine_without_java_asks_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question would fail with the line that the machine's finding has."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("HOMEPORT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    areas = {Area.MACHINE, Area.NODES}
    found = list(findings(areas, None, NodeQuestion(1, 1.0), pytest.fail))
    java = [finding for finding in found if "Java" in f"{finding.found} {finding.remedy}"]
    assert [(finding.check, finding.found) for finding in java] == [("machine.java", "no Java")]
    assert "sudo apt-get install openjdk-17-jre-headless" in java[0].remedy
    probe = [finding for finding in found if finding.check == "node.probe"]
    assert [finding.level for finding in probe] == [Level.UNKNOWN]
