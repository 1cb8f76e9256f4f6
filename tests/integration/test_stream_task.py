"""A StreamTask in a stream container's process, and bad records, against a real broker."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from stream_containers import DEADLINE_S, Job, Make, Record

from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka.topics import TopicAdmin

TASK = """
from homeport.container.api import StreamTask

class Counter(StreamTask):
    def init(self, context):
        if context.config.get("job.fail.init"):
            raise RuntimeError("no init")
        self.context = context
        self.counts = context.store("counts")
        self.windows = 0

    def process(self, message, collector, coordinator):
        word = message.value["word"]
        if word == "poison":
            raise ValueError("poison found")
        if word == "end":
            coordinator.shutdown()
            return
        if word == "commit":
            coordinator.commit()
        if word == "large":
            self.counts.put(message.key, 1)
            collector.send("out", b"before", b"before")
            self.large(message, collector)
        self.counts.put(word, (self.counts.get(word) or 0) + 1)
        collector.send("out", str(self.counts.get(word)).encode(), word.encode())

    def large(self, message, collector):
        collector.send("out", b"x" * message.value["size"], b"large")

    def window(self, collector, coordinator):
        self.windows += 1
        if self.windows <= 2:
            collector.send("out", str(self.windows).encode(), b"window-" + self.name())

    def end_of_stream(self, collector, coordinator):
        collector.send("out", b"ended", b"end-" + self.name())

    def close(self):
        print("closed", self.context.task_name, flush=True)

    def name(self):
        return self.context.task_name.encode()
"""
SERDES = {"systems.kafka.samza.key.serde": "string", "systems.kafka.samza.msg.serde": "json"}


JOBS = {"code": TASK, "common": SERDES}
"""Of ``make``: a job from the code of its task and further keys."""


def _word(partition: int, word: str) -> Record:
    return partition, b"k", b'{"word": "%s"}' % word.encode()


def test_messages_windows_commits_and_the_end(make: Make) -> None:
    """Values come decoded, windows come by time; all voted: exit 0, exact.

    L5: a commit on request is the container's. L6: one vote alone ends nothing. L8: what a task
    sends at its end is committed.
    """
    job = make(task_window_ms="300", task_commit_ms="600000")
    container = job.start(1)
    job.produce([_word(i % 2, f"p{i % 2}-w{i % 3}") for i in range(60)])
    job.until(lambda: "window-Partition 1" in job.table("out"), container)
    job.until(lambda: job.table("out").get("window-Partition 0") == b"2", container)
    before = len(job.history("commit"))
    job.produce([_word(0, "commit")])
    job.until(lambda: len(job.history("commit")) > before, container)
    job.produce([_word(0, "end"), _word(0, "late")])
    job.until(lambda: job.processed() == 63, container)
    assert container.process.poll() is None, "one task alone ends nothing"
    job.produce([_word(1, "end")])
    assert container.process.wait(DEADLINE_S) == 0
    assert container.memory.is_finished
    out = job.table("out")
    assert {out.pop("end-Partition 0"), out.pop("end-Partition 1")} == {b"ended"}
    counts = {f"p{p}-w{w}": b"10" for p in (0, 1) for w in range(3)}
    windows = {"window-Partition 0": b"2", "window-Partition 1": b"2"}
    assert out == {**counts, **windows, "commit": b"1", "late": b"1"}
    assert job.processed() == 64
    log = container.log.read_text(encoding="utf-8")
    assert log.count("closed Partition") == 2
    assert "finished" in log


BAD: list[tuple[int, bytes | None, bytes | None]] = [
    (0, b"k", b'{"word": "good"}'),
    (0, b"raw \xff", b"{}"),
    (0, b"raw", b"no json"),
    (0, b"k", b'{"word": "good"}'),
]
LARGE_STATE = TASK.replace(
    """collector.send("out", b"x" * message.value["size"], b"large")""",
    """self.counts.put("x" * message.value["size"], 1)""",
)
_PLACE = "task 'Partition 0' failed in process of <in> partition 0 offset"
FAILURES: dict[str, tuple[dict[str, str], Sequence[Record], str]] = {
    "process": (
        {},
        [_word(0, "good"), _word(0, "poison")],
        f"{_PLACE} 1: ValueError: poison found",
    ),
    "init": (
        # What is skipped in process has no such way out here.
        {"job_fail_init": "yes", "task_ignored_exceptions": "*"},
        [],
        "task 'Partition 0' failed in init: RuntimeError: no init",
    ),
    "import": (
        {"code": "raise SystemExit(0)"},
        [],
        (
            "task.class = 'user_job:Counter': the module cannot be imported: SystemExit: 0; "
            "see that it is in yarn.package.path and imports by itself"
        ),
    ),
    # Even where every exception is ignored: the message counts as read, and is in no state.
    "a record that a store refuses": (
        {
            "task_ignored_exceptions": "*",
            "stores_counts_changelog_max_message_size_bytes": "4",
            "stores_counts_disallow_large_messages": "true",
        },
        [_word(0, "poison"), _word(0, "good")],
        (
            f"{_PLACE} 1: RecordTooLargeError: "
            "store counts of task 'Partition 0': the value of key b'good' has 8 bytes..."
        ),
    ),
    "a record that cannot be read": (
        {},
        BAD,
        (
            "input kafka.<in> partition 0 offset 1: its key cannot be read by the serde 'string': "
            "not UTF-8: b'raw \\xff'; correct its writer, or set "
            "task.drop.deserialization.errors=true to skip such records"
        ),
    ),
    "an output over the producer's limit": (
        {},
        [(0, b"k", b'{"word": "large", "size": 3000000}')],
        (
            f"{_PLACE} 0: ValueError: a record "
            "for <out> with key b'large': it has 3000005 bytes, with what the client adds 3000041, "
            "and at most 1000000 are sent; write smaller values,..."
        ),
    ),
    "a change over the topic's limit": (
        {"code": LARGE_STATE, "systems_kafka_producer_max_request_size": "5000000"},
        [(0, b"k", b'{"word": "large", "size": 1500000}')],
        (
            "store counts of task 'Partition 0' (changelog <changelog>): a record of 1500008 bytes "
            "exceeds the limit of 1048588 bytes;..."
        ),
    ),
}


@pytest.mark.parametrize(("keys", "records", "line"), FAILURES.values(), ids=FAILURES)
def test_what_fails_the_container_is_one_line_and_keeps_nothing(
    make: Make, keys: dict[str, str], records: Sequence[Record], line: str
) -> None:
    """L11: step, place and cause; of its transaction no output, no state and no position stays."""
    job = make(**keys)
    job.produce(records)
    expected = re.sub("<([a-z]+)>", lambda of: job.topic(of[1]), line)
    stated, beginning = job.fails().removeprefix("error: "), expected.removesuffix("...")
    assert stated == expected or (stated.startswith(beginning) and beginning != expected)
    assert job.read(job.topic("out")) == []
    assert job.read(job.topic("changelog")) == []
    assert job.processed() == 0


EXITS = """
from homeport.container.api import StreamTask

class Counter(StreamTask):
    def process(self, message, collector, coordinator):
        collector.send("out", b"of a message that the container did not survive")
        {exits}
"""


@pytest.mark.parametrize(
    ("exits", "code", "stated"),
    [
        ("import sys; sys.exit()", 1, "SystemExit"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
        ("import os; os._exit(0)", 0, ""),
    ],
)
def test_a_task_that_ends_the_process_has_not_finished(
    make: Make, exits: str, code: int, stated: str
) -> None:
    """Its failure is reported like any other; a process that it ends reports no finish.

    What it had processed is not committed.
    """
    job = make(EXITS.format(exits=exits), task_ignored_exceptions="*")
    job.produce([(0, b"a", b"1")])
    container = job.start(1)
    assert container.process.wait(DEADLINE_S) == code
    assert not container.memory.is_finished
    if stated:
        place = f"process of {job.topic('in')} partition 0 offset 0"
        expected = f"error: task 'Partition 0' failed in {place}: {stated}"
        assert container.last_line() == expected
    assert job.read(job.topic("out")) == []


def test_ignored_exceptions_are_skipped(make: Make) -> None:
    """The message is passed over, the rest is exact."""
    job = make(task_ignored_exceptions="KeyError,ValueError")
    job.produce([_word(0, "poison"), _word(0, "good"), (0, b"k", b'{"other": 1}')])
    container = job.start(1)
    job.until(lambda: job.processed() == 3, container)
    assert container.stop() == 143
    assert job.table("out") == {"good": b"1"}


def _dropping(make: Make, **keys: str) -> tuple[Job, str]:
    """A job that sends bad records to a topic, and that topic."""
    topic = f"dead{id(make)}"
    keys |= {
        "task_drop_deserialization_errors": "true",
        "task_dead_letter_stream": f"kafka.{topic}",
    }
    job = make(**keys)
    TopicAdmin(SystemConfig.of(job.config, "kafka")).create(topic, 1, 1, {})
    return job, topic


def test_undecodable_records_go_to_the_dead_letters(make: Make) -> None:
    """They are skipped, logged, and sent raw with their reason and where they came from."""
    job, topic = _dropping(make)
    job.produce(BAD)
    container = job.start(1)
    job.until(lambda: job.processed() == 4, container)
    assert container.stop() == 143
    assert job.table("out") == {"good": b"2"}
    letters = job.messages(topic)
    assert [(m.key(), m.value()) for m in letters] == [BAD[1][1:], BAD[2][1:]]
    headers = dict(letters[1].headers() or [])
    assert headers == {
        "homeport.reason": b"its value cannot be read by the serde 'json': not JSON: b'no json'",
        "homeport.source.topic": job.topic("in").encode(),
        "homeport.source.partition": b"0",
        "homeport.source.offset": b"2",
    }
    log = container.log.read_text(encoding="utf-8")
    assert f"dropped kafka.{job.topic('in')} partition 0 offset 2: its value" in log
    assert "(2 so far)" in log


AFTER_PIPELINE = """
from homeport.container.api import StreamTask

class Counter(StreamTask):
    def process(self, message, collector, coordinator):
        assert message.stream == "" and message.key is None and "task" not in message.value
        place = f"{message.partition}-{message.offset}"
        collector.send("out", message.value["upper"].encode(), place.encode())
        if message.value["upper"] == "END":
            coordinator.shutdown()

    def close(self):
        # The collector finds the frames of the last batches, and py4j informs the JVM.
        import gc, time
        gc.collect()
        time.sleep(1)

def pipeline(frame):
    from pyspark.sql import functions as f
    upper = f.upper(f.decode("value", "utf-8")).alias("upper")
    return frame.select("task", "partition", "offset", upper)
"""


@pytest.mark.long
def test_after_a_pipeline_the_value_is_the_row(make: Make) -> None:
    """Columns come as {name: value}; what the pipeline dropped is empty."""
    job = make(
        AFTER_PIPELINE, task_pipeline_class="user_job:pipeline", task_pipeline_unordered="true"
    )
    job.produce([(0, None, b"a"), (1, None, b"b"), (1, None, b"end"), (0, None, b"end")])
    container = job.start(1)
    assert container.process.wait(DEADLINE_S) == 0, container.log.read_text(encoding="utf-8")
    assert job.table("out") == {"0-0": b"A", "1-0": b"B", "1-1": b"END", "0-1": b"END"}
    assert "Traceback" not in container.log.read_text(encoding="utf-8")


TYPED = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def process_batch(self, table, collector):
        for offset, value in zip(table["offset"].to_pylist(), table["value"].to_pylist()):
            said = "none" if value is None else str(value["delay"])
            collector.send("out", said.encode(), str(offset).encode())
"""


def test_values_with_a_schema_come_as_columns_and_bad_ones_go(make: Make) -> None:
    """A batch of bad records alone moves the position too."""
    job, topic = _dropping(
        make,
        code=TYPED,
        systems_kafka_samza_msg_serde="flights",
        serializers_registry_flights_class="json",
        serializers_registry_flights_schema="delay INT",
    )
    job.produce([(0, None, b'{"delay": 5}\n'), (0, None, b"bad"), (0, None, None)])
    container = job.start(1)
    job.until(lambda: job.processed() == 3, container)
    job.produce([(0, None, b'{"delay": "5"}')])
    job.until(lambda: job.processed() == 4, container)
    assert container.stop() == 143
    assert job.table("out") == {"0": b"5", "2": b"none"}
    assert [m.value() for m in job.messages(topic)] == [b"bad", b'{"delay": "5"}']
