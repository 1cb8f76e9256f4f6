"""The error of a writer whose transactional id a newer holder has taken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from homeport.config.errors import FencedError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.progress.transaction_plan import Send
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from tests.unit.world.world import World


def _container(world: World) -> Callable[[], object]:
    producer = TransactionalProducer(SystemConfig.of(world.config, "kafka"), "homeport.same")
    producer.initialise()

    def write() -> None:
        producer.begin()
        producer.send([Send("out", b"k", b"v", 0)])
        producer.deliver()
        producer.commit()

    return write


def _driver(world: World) -> Callable[[], object]:
    stream = world.stream("homeport.same")
    return lambda: stream.write([wire.set_config("a", "1")])


@pytest.mark.parametrize("begun", [_container, _driver])
def test_a_fenced_writer_raises_the_one_error(
    begun: Callable[[World], Callable[[], object]],
) -> None:
    """Containers and drivers raise the same class: catching it misses neither."""
    with World() as world:
        write = begun(world)
        begun(world)
        with pytest.raises(FencedError):
            write()
