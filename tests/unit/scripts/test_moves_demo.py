"""scripts/demo --moves: its next package, the pauses that it finds in a history."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_history.pauses import Pause, pause_before
from check_history.reading import Event
from flights_demo.job import EXAMPLE
from flights_demo.moves import make_next_edition
from flights_demo.screen import DemoError

from tests.unit.scripts.test_check_history import History


def _history(folder: Path, *facts: tuple[int, str, str, str, int]) -> list[Event]:
    """(ms, host, event, processor, epoch) of each, as the job's processes write them."""
    history = History(folder)
    for at, host, name, processor, epoch in facts:
        history.event(at, "container", name, (processor, epoch), host)
    return history.events()


COMMITTED = "transaction-committed"


def test_a_pause_is_from_the_last_transaction_to_the_first_of_the_epoch(tmp_path: Path) -> None:
    """Other events, other processors and later transactions do not count."""
    events = _history(
        tmp_path,
        (1_000, "nm1", COMMITTED, "0", 1),
        (2_000, "nm1", COMMITTED, "0", 1),
        (2_100, "nm1", "child-stopped", "0", 1),
        (2_500, "nm2", COMMITTED, "1", 2),
        (3_000, "nm3", "started", "0", 2),
        (3_400, "nm3", COMMITTED, "0", 2),
        (4_000, "nm3", COMMITTED, "0", 2),
    )
    assert pause_before(events, "0", 2) == Pause("0", 2, "nm1", "nm3", 1_400)


@pytest.mark.parametrize(("epoch", "pause_ms"), [(1, None), (2, 1_000), (4, 7_000), (5, None)])
def test_epochs_that_committed_nothing_belong_to_the_pause(
    tmp_path: Path, epoch: int, pause_ms: int | None
) -> None:
    """Nothing was committed before the first epoch, by epoch 3, nor by the last one yet."""
    events = _history(
        tmp_path,
        (1_000, "nm1", COMMITTED, "0", 1),
        (2_000, "nm1", COMMITTED, "0", 2),
        (5_000, "nm2", "started", "0", 3),
        (9_000, "nm2", COMMITTED, "0", 4),
        (9_500, "nm2", "started", "0", 5),
    )
    pause = pause_before(events, "0", epoch)
    assert (pause and pause.ms) == pause_ms


def test_the_next_package_differs_in_its_edition_alone(tmp_path: Path) -> None:
    """So what it computes is the same; where there is no edition, one line says so."""
    package, target = EXAMPLE / "package", tmp_path / "next"
    make_next_edition(package, target)
    changed = {
        file.name: (package / file.name).read_text()
        for file in target.glob("*.py")
        if file.read_text() != (package / file.name).read_text()
    }
    assert list(changed) == ["reference_data.py"]
    assert (target / "reference_data.py").read_text() == changed["reference_data.py"].replace(
        "EDITION = 1", "EDITION = 2", 1
    )
    with pytest.raises(DemoError, match="has no line 'EDITION = 1'"):
        make_next_edition(target, tmp_path / "again")
