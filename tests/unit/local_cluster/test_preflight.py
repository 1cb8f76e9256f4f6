"""What a machine lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.local_cluster import preflight
from homeport.local_cluster.errors import ClusterError


def test_all_that_a_machine_lacks_is_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line has each program and library, and the packages that bring them."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(preflight, "_has_libcrypt", lambda: False)
    with pytest.raises(ClusterError) as caught:
        preflight.require_tools(maven=True, skein=True)
    assert str(caught.value) == (
        "this machine lacks Java 17; Maven (mvn), which fetches the jars of Kafka and YARN; "
        "libcrypt.so.1, which Skein needs; install what is missing (Debian, Ubuntu: sudo apt-get "
        "install openjdk-17-jre-headless maven libcrypt1) and run this again"
    )


def test_what_is_not_used_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jars that are there need no Maven, a cluster without nodes no Skein."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'version \"17.0.1\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setattr(preflight, "_has_libcrypt", lambda: False)
    assert preflight.require_tools(maven=False, skein=False) == tmp_path / "jdk"
