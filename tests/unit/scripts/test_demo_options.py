"""scripts/demo: which options go together."""

from __future__ import annotations

import pytest
from flights_demo.options import parse_arguments

ONLY_FAULT = "--fail-host is the only fault of its run"
ALONE = "--standalone goes alone"
LIVING_ALONE = "--living goes alone: leave out the others"
LEAVE_OUT = "leave out"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-host", "--rescale"], ONLY_FAULT),
        (["--fail-host", "--chaos", "1"], ONLY_FAULT),
        (["--fail-host", "--kill-loop", "1"], ONLY_FAULT),
        (["--fail-host", "--kill-container"], ONLY_FAULT),
        (["--prewarm"], "--prewarm goes with --fail-host only"),
        (["--fail-host", "--prewarm", "--form", "stream-task"], "has no pipeline to prewarm"),
        (["--fail-host", "--prewarm", "--form", "batch-task"], "has no pipeline to prewarm"),
        (["--fail-host", "--prewarm", "--form", "app"], "has no pipeline to prewarm"),
        (["--mixed"], "--mixed goes with --fail-host, --rescale, --chaos or --standbys"),
        (["--mixed", "--moves"], "--mixed goes with --fail-host, --rescale, --chaos or --standbys"),
        (["--mixed", "--fail-host", "--prewarm"], "leave out --prewarm"),
        (["--mixed", "--rescale", "--form", "sql-alone"], "has no state"),
        (["--mixed", "--rescale", "--fail-host"], ONLY_FAULT),
        (["--mixed", "--standalone"], ALONE),
        (["--moves", "--form", "app"], "leave out --form app"),
        (["--moves", "--chaos", "1"], LEAVE_OUT),
        (["--moves", "--fail-host"], LEAVE_OUT),
        (["--moves", "--kill-container"], LEAVE_OUT),
        (["--moves", "--kill-loop", "1"], LEAVE_OUT),
        (["--moves", "--rescale"], LEAVE_OUT),
        (["--moves", "--standalone"], LEAVE_OUT),
        (["--moves", "--attached", "archive"], ""),
        (["--standalone", "--keep"], ALONE),
        (["--standalone", "--rate", "5"], ALONE),
        (["--standalone", "--kill-loop", "0"], ALONE),
        (["--standalone", "--fail-host"], ALONE),
        (["--standalone", "--living"], ALONE),
        (["--living", "--keep"], LIVING_ALONE),
        (["--living", "--form", "app"], LIVING_ALONE),
        (["--living", "--chaos", "0"], LIVING_ALONE),
        (["--living", "--attached", "archive"], LIVING_ALONE),
    ],
    ids=" ".join,
)
def test_options_that_do_not_combine_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line that says what to leave out, before anything is set up."""
    with pytest.raises(SystemExit) as caught:
        parse_arguments(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_host_that_dies_has_standbys() -> None:
    """They need not be asked for; --keep and --rate go with it."""
    options = parse_arguments(["--fail-host", "--prewarm", "--keep", "--rate", "5000"])
    assert options.standbys
    assert not parse_arguments(["--keep"]).standbys
    assert parse_arguments(["--fail-host", "--prewarm", "--form", "sql-and-task"]).prewarm


@pytest.mark.parametrize(
    "story", [["--fail-host"], ["--rescale"], ["--chaos", "0"], ["--standbys"]], ids=str
)
def test_mixed_containers_have_standbys(story: list[str]) -> None:
    """Whatever befalls them; also in a cluster of containers."""
    options = parse_arguments(["--mixed", *story])
    assert (options.mixed, options.standbys) == (True, True)
    assert parse_arguments(["--mixed", "--fail-host", "--attached", "archive"]).mixed


def test_moves_go_with_the_forms_and_with_standbys() -> None:
    """And with a pace of the input."""
    given = ["--moves", "--form", "batch-task", "--standbys", "--rate", "9", "--keep"]
    options = parse_arguments(given)
    assert options.moves
    assert options.standbys


def test_standalone_goes_with_a_form_or_a_seed() -> None:
    """A seed may be 0."""
    options = parse_arguments(["--standalone", "--form", "batch-task"])
    assert (options.standalone, options.form) == (True, "batch-task")
    assert parse_arguments(["--standalone", "--chaos", "0"]).chaos == 0
