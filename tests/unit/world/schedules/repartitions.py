"""Schedules of I10: records that tasks have sent on are deleted behind them."""

from __future__ import annotations

import pytest

from homeport.container.processing.open_transaction import OpenTransaction, _Ended
from homeport.container.progress.transaction_plan import Step
from tests.unit.world.rules import schedule
from tests.unit.world.scene import Scene

COMMIT = "commit homeport.j.1.processor"
REKEYED = {
    "task.repartition.by": "inputs",
    "task.repartition.by.key.serde": "bytes",
    "task.repartition.by.msg.serde": "bytes",
    "task.repartition.purge.ms": "1",
}


def deletes_what_it_is_about_to_commit(patch: pytest.MonkeyPatch) -> None:
    """The deletion leaves before the commit."""
    send = OpenTransaction._send_checkpoints

    def with_deletion(transaction: OpenTransaction, step: Step, ended: _Ended) -> None:
        send(transaction, step, ended)
        if transaction._deps.purge is not None:
            transaction._deps.purge.committed(ended.content.processed)

    patch.setattr(OpenTransaction, "_send_checkpoints", with_deletion)


@schedule("I10", "all is counted", deletes_what_it_is_about_to_commit, config=REKEYED)
def a_container_dies_before_the_commit_of_what_was_sent_on(scene: Scene) -> None:
    """Its successor has the position of before, and reads the records once more."""
    scene.working(3)
    scene.run(100)
    child = scene.child("0@1")
    child.stop_at(COMMIT, 3)  # before the second one
    scene.produce(2)
    scene.until(lambda: child.is_stopped, "it stands before the commit of its counts")
    child.kill()
    scene.until_counted()
