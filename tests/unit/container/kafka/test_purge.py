"""The requests by which a container deletes committed records of repartitions."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from small_jobs import KEYS, job_of

from homeport.config.settings.sections import SystemConfig
from homeport.container.incarnation.loop_inputs import purge_of
from homeport.container.kafka.purge import Purge
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_TOPIC = "__homeport_repartition_j_1_x"
_TASK = TaskName("Partition 0")


class _Admin:
    """Notes its requests; ``answers`` are given by hand."""

    def __init__(self) -> None:
        self.asked: list[dict[int, int]] = []
        self.answers: list[dict[int, Future[Any]]] = []

    def delete_records(
        self, places: list[TopicPartition], *, request_timeout: float
    ) -> dict[TopicPartition, Future[Any]]:
        """As the library."""
        assert request_timeout > 0
        assert {place.topic for place in places} == {_TOPIC}
        self.asked.append({place.partition: place.offset for place in places})
        self.answers.append({place.partition: Future() for place in places})
        return {place: self.answers[-1][place.partition] for place in places}


class _Scene:
    """A container that commits at hand-made times."""

    def __init__(self, **more: str) -> None:
        self.now_s, self.admin = 0.0, _Admin()
        keys = {
            **KEYS,
            "task.repartition.x": "2",
            **{k.replace("_", "."): v for k, v in more.items()},
        }
        made = purge_of(job_of(keys), lambda: self.now_s, self._connect)
        assert made is not None
        self.purge: Purge = made

    def _connect(self, system: SystemConfig) -> AdminClient:
        assert system.name == "kafka"
        return cast("AdminClient", self.admin)

    def commit(self, *offsets: int, at_s: float) -> None:
        """A transaction with these last offsets, by partition, is committed."""
        self.now_s = at_s
        places = {SystemStreamPartition("kafka", _TOPIC, p): o for p, o in enumerate(offsets)}
        self.purge.committed({_TASK: {**places, SystemStreamPartition("kafka", "in", 0): 70}})


def test_a_job_without_repartitions_deletes_nothing() -> None:
    """And has no client for it."""
    assert purge_of(job_of(KEYS), lambda: 0.0) is None


def test_records_are_deleted_behind_the_commit_every_half_minute() -> None:
    """Or by the key; the tasks' own inputs are not touched."""
    scene = _Scene()
    scene.commit(3, 5, at_s=29)
    assert scene.admin.asked == []
    scene.commit(4, 5, at_s=30)
    assert scene.admin.asked == [{0: 5, 1: 6}]
    scene.commit(9, 9, at_s=100)
    assert len(scene.admin.asked) == 1, "no answer yet"
    for answer in scene.admin.answers[0].values():
        answer.set_result(None)
    scene.commit(9, 9, at_s=101)
    assert scene.admin.asked[1:] == [{0: 10, 1: 10}]
    soon = _Scene(task_repartition_purge_ms="500")
    soon.commit(0, at_s=0.5)
    assert soon.admin.asked == [{0: 1}]


def test_a_failure_is_one_warning_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """It costs no work: what is not deleted takes disk space alone."""
    scene = _Scene()
    scene.commit(3, 5, at_s=30)
    error = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no right"))
    for answer in scene.admin.answers[0].values():
        answer.set_exception(error)
    with caplog.at_level(logging.WARNING):
        scene.commit(6, 6, at_s=60)
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.endswith(", and 1 others: what is processed is not deleted yet: no right")
    assert scene.admin.asked[1:] == [{0: 7, 1: 7}]
    caplog.clear()
    scene.admin.answers[1][0].set_exception(error)
    scene.commit(6, 6, at_s=61)
    place = f"SystemStreamPartition [kafka, {_TOPIC}, 0]"
    (line,) = (record.getMessage() for record in caplog.records)
    assert line == f"{place}: what is processed is not deleted yet: no right"
