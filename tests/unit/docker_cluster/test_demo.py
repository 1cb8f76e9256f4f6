"""docker/demo: which options go together, and which the demo in the client gets."""

from __future__ import annotations

import pytest
from docker_cluster.demo import parse_arguments, passed_on
from flights_demo import options


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([], []),
        (["--secure"], []),
        (["--keep", "--fail-host"], ["--fail-host", "--keep"]),
        (["--mixed", "--fail-host"], ["--fail-host", "--mixed"]),
    ],
    ids=" ".join,
)
def test_the_demo_in_the_client_gets_what_it_knows(given: list[str], passed: list[str]) -> None:
    """And takes it, with the archive of its environment."""
    assert passed_on(parse_arguments(given)) == passed
    assert options.parse_arguments(["--attached", "archive", *passed]).attached == "archive"


def test_mixed_containers_are_shown_where_a_host_is_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything is set up."""
    with pytest.raises(SystemExit) as caught:
        parse_arguments(["--mixed"])
    assert caught.value.code == 2
    assert "give that too" in capsys.readouterr().err.splitlines()[-1]
