"""Skein's resource manager on a real YARN cluster keeps the contract."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from bare_application import BareApplication, bare_application
from cluster_resource_manager_conformance import ClusterResourceManagerConformance

from homeport.local_cluster.cluster import LocalCluster


@pytest.fixture(scope="module")
def application(
    cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BareApplication]:
    """One application for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        for key, value in cluster.env().items():
            patch.setitem(os.environ, key, value)
        with bare_application(cluster, tmp_path_factory.mktemp("bare")) as started:
            yield started


class TestSkeinResourceManager(ClusterResourceManagerConformance):
    """The suite that the YARN of tests/unit/world passes too."""

    @pytest.fixture
    def subject(self, application: BareApplication) -> BareApplication:
        """The application."""
        return application
