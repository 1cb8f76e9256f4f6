"""A local job goes on in another folder: what the folder that is lost had, the stream has."""

from __future__ import annotations

from pathlib import Path

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.container.standalone.adoption import AdoptionWatch, adopt
from homeport.container.standalone.local_tree import LocalTree
from homeport.container.standalone.planner import KeptStream
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.epochs import EpochManager, FenceReport
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.container.standalone.test_local_tree import OWN, driven

CONFIG = Config({"job.name": "counts", "job.default.system": "k"})


def _stream(recorded: str = "local") -> InMemoryCoordinatorStream:
    """0@5 fenced 0@4; "b" ran as 7, and no report names it."""
    stream = InMemoryCoordinatorStream()
    stream.write([wire.set_config("job.coordinator.factory", recorded)])
    epochs = EpochManager(stream)
    epochs.write_fenced(OWN, FenceReport(5, (Incarnation(OWN, 4),)))
    epochs.write_fenced(ProcessorId("b"), FenceReport(7, ()))
    stream.catch_up()
    return stream


def _tree(folder: Path) -> LocalTree:
    tree = LocalTree(folder)
    tree.acquire()
    return tree


def test_the_next_incarnation_is_above_all_and_fences_all(tmp_path: Path) -> None:
    """Whatever processors they were of; what a report names is fenced for good."""
    stream = _stream()
    tree = _tree(tmp_path / "new")
    assert adopt(tree, stream, CONFIG)
    assert EpochManager(stream).read_tree() == tree.id
    tree.close()
    job = driven(tmp_path / "new")
    assert [(s.generation, s.fence) for s in job.started] == [
        (8, (Incarnation(OWN, 5), Incarnation(ProcessorId("b"), 7)))
    ]
    assert job.tree.id == tree.id


def test_one_that_begins_meanwhile_is_in_the_list(tmp_path: Path) -> None:
    """It has reported before it could read that another tree goes on."""

    class Late(InMemoryCoordinatorStream):
        def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
            if EpochManager(self).read_fenced():
                EpochManager(self).write_fenced(OWN, FenceReport(9, (Incarnation(OWN, 5),)))
            return super().catch_up()

    stream = Late()
    stream.write([wire.set_config("job.coordinator.factory", "local")])
    EpochManager(stream).write_fenced(OWN, FenceReport(5, ()))
    stream.catch_up()
    tree = _tree(tmp_path / "new")
    assert adopt(tree, stream, CONFIG)
    tree.close()
    (begun,) = driven(tmp_path / "new").started
    assert (begun.generation, begun.fence) == (10, (Incarnation(OWN, 9),))


def test_a_folder_that_has_the_newest_version_goes_on_as_it_is(tmp_path: Path) -> None:
    """So does that of a job which never ran: the option may stand in a unit file."""
    tree = _tree(tmp_path / "new")
    assert not adopt(tree, InMemoryCoordinatorStream(), CONFIG)
    stream = _stream()
    assert adopt(tree, stream, CONFIG)
    assert not adopt(tree, stream, CONFIG)
    assert tree.version == 7


@pytest.mark.parametrize("recorded", ["zookeeper", "yarn"])
def test_a_job_of_another_coordinator_is_refused(tmp_path: Path, recorded: str) -> None:
    """What ran there is fenced by a migration alone; nothing is written."""
    stream = _stream(recorded)
    tree = _tree(tmp_path / "new")
    with pytest.raises(ConfigError, match="not by run-local; leave the option out"):
        adopt(tree, stream, CONFIG)
    assert EpochManager(stream).read_floor() == 0
    assert tree.version == 0


def test_a_folder_of_an_earlier_release_is_given_an_id(tmp_path: Path) -> None:
    """Without one, an adoption in it would let what is left of another folder go on."""
    folder = tmp_path / "old"
    job = driven(folder)
    job.tree.close()
    path = folder / "coordination.json"
    path.write_text(path.read_text().replace(f'"id":"{job.tree.id}",', ""))
    old = _tree(folder)
    assert old.id not in {"", job.tree.id}
    assert old.version == 1


class _Kept(KeptStream):
    """The stream in memory; ``is_away``: Kafka does not answer."""

    def __init__(self, stream: InMemoryCoordinatorStream) -> None:
        super().__init__(CONFIG)
        self.stream = stream
        self.is_away = False
        self.closed = 0

    def read(self) -> InMemoryCoordinatorStream:  # type: ignore[override]  # the same without Kafka
        if self.is_away:
            raise UnavailableError("Kafka does not answer")
        self.stream.catch_up()
        return self.stream

    def close(self) -> None:
        self.closed += 1


def test_a_processor_that_waits_for_input_learns_that_another_folder_goes_on(
    tmp_path: Path,
) -> None:
    """Fenced, it would see it at its next commit alone; a Kafka that is away says nothing."""
    stream, lines = _stream(), list[str]()
    tree = _tree(tmp_path / "new")
    kept = _Kept(stream)
    watch, own = (AdoptionWatch(kept, name, lines.append) for name in ("former", tree.id))
    assert watch.check()
    adopt(tree, stream, CONFIG)
    kept.is_away = True
    assert watch.check()
    assert (kept.closed, lines) == (1, [])
    kept.is_away = False
    assert own.check()
    assert not watch.check()
    assert lines == ["the job goes on in another folder: run-local --adopt began there"]
    tree.close()
