"""TestRunner: a job's whole logic without Kafka and without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from homeport.config.errors import ConfigError, StoreError, WireError
from homeport.container.api import BatchTask
from homeport.container.callables import TaskFailedError
from homeport.container.processing.records import UndecodableError
from homeport.testing import Record, TestRunner, TestRunnerError
from homeport.testing.memory_container import _NoWorkers
from homeport.testing.partitioner import murmur2, partition_of
from tests.unit.testing.counting_job import Count, CountBatch, config, feed

ENGINES = ["in-memory", "rocksdb"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stream_task_sees_records_and_its_writes_are_committed(engine: str) -> None:
    """Output, store, changelog and checkpoint say the same after a run."""
    with TestRunner(config(engine), task=Count) as runner:
        for n in (1, 2, 4):
            runner.send("kafka.in", key="a", value={"n": n}, headers={"h": b"x"})
        assert runner.run() == 3
        assert runner.output("kafka.out") == [Record(b"a", s) for s in (b"1", b"3", b"7")]
        assert runner.output("out")[0].headers == {"h": b"x"}
        assert runner.store("counts").get("a") == 7
        assert runner.changelog("counts") == {"a": 7}
        assert runner.checkpoint() == {"kafka.in.0": 2}
        assert runner.run() == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_task_sends_at_the_end_of_its_transaction(engine: str) -> None:
    """Once for each key that changed, whatever the number of its records."""
    with TestRunner(config(engine), task=CountBatch, partitions=2) as runner:
        for key in ("a", "b", "a"):
            runner.send("kafka.in", key=key, value={}, partition=1)
        runner.run()
        assert runner.output("kafka.out") == [Record(b"a", b"2"), Record(b"b", b"1")]
        assert runner.store("counts", partition=1).get("a") == 2
        assert runner.store("counts", task="Partition 0").get("a") is None


def test_small_batches_make_one_transaction() -> None:
    """The first one ends with the first batch, as in production; the rest is one more."""
    with TestRunner(config(), task=CountBatch, batch_rows=1) as runner:
        for _ in range(5):
            runner.send("kafka.in", key="a", value={})
        runner.run()
        assert runner.output("kafka.out") == [Record(b"a", b"1"), Record(b"a", b"5")]


def test_keys_lie_in_the_partitions_that_kafka_gives_them() -> None:
    """A key without a partition goes where murmur2 places it, and its task counts it."""
    with TestRunner(config(), task=Count, partitions={"kafka.in": 4}) as runner:
        for key in ("21", "foobar", "abc"):
            runner.send("kafka.in", key=key, value={"n": 1})
        runner.run()
        assert runner.tasks == tuple(f"Partition {p}" for p in range(4))
        held = {key: p for p in range(4) for key, _ in runner.store("counts", partition=p).all()}
        assert held == {"21": 0, "foobar": 2, "abc": 3}


def test_nulls_go_through() -> None:
    """A null key and a null value are None in the task; None in an output is null."""
    with TestRunner(config(), task=Count) as runner:
        runner.send("kafka.in", value={"n": 2})
        runner.send("kafka.in", key="a", value={"n": 1})
        feed(runner, key="a")
        assert list(runner.store("counts").all()) == [("<none>", 2)]
        assert runner.changelog("counts") == {"<none>": 2}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("same_host", [True, False])
def test_the_next_incarnation_goes_on(engine: str, *, same_host: bool) -> None:
    """State and position stay, on its host and on another; no record is read twice."""
    with TestRunner(config(engine), task=Count) as runner:
        feed(runner, key="a", value={"n": 1})
        runner.restart(same_host=same_host)
        is_home = same_host and engine == "rocksdb"
        assert runner.restored("counts").records == (0 if is_home else 1)
        assert feed(runner, key="a", value={"n": 10}) == 1
        assert runner.output("kafka.out") == [Record(b"a", b"1"), Record(b"a", b"11")]


def test_a_store_without_a_changelog_begins_empty() -> None:
    """It lives no longer than its container."""
    keys = config("rocksdb")
    del keys["stores.counts.changelog"]
    with TestRunner(keys, task=Count) as runner:
        feed(runner, key="a", value={"n": 1})
        assert runner.store("counts").get("a") == 1
        runner.restart()
        assert runner.store("counts").get("a") is None


def test_upcoming_passes_over_nothing_that_is_sent_to_a_stopped_job() -> None:
    """Where a task begins is committed at its start."""
    with TestRunner(config(), task=Count) as runner:
        runner.stop()
        runner.send("kafka.in", key="a", value={"n": 1})
        runner.restart()
        assert runner.run() == 1


@pytest.mark.parametrize("period", [100, 1000])
def test_windows_come_as_the_clock_is_moved(period: int) -> None:
    """One for each whole period, also where the clock takes many at once; a run has none."""
    with TestRunner(config(task__window__ms=period), task=Count) as runner:
        runner.run()
        assert runner.output("windows") == []
        runner.advance(period - 1)
        assert runner.output("windows") == []
        runner.advance(1)
        runner.run()
        assert len(runner.output("windows")) == 1
        runner.advance(9 * period)
        runner.run()
        assert len(runner.output("windows")) == 10
        assert runner.output("windows")[0].timestamp == runner.now_ms - 9 * period
        runner.restart()
        runner.advance(10 * period)
        runner.run()
        assert len(runner.output("windows")) == 20


def test_a_transaction_ends_by_its_age() -> None:
    """Without a run, what the task has sent is committed once task.transaction.ms have passed."""
    late = config(task__window__ms=1000, task__transaction__ms=400, task__transaction__idle__ms=-1)
    with TestRunner(late, task=Count) as runner:
        runner.advance(1000)
        assert runner.output("windows") == []
        runner.advance(399)
        assert runner.output("windows") == []
        runner.advance(1)
        assert len(runner.output("windows")) == 1


def test_a_transaction_without_input_ends_at_once_by_default() -> None:
    """As in a container: nothing else is to be done."""
    with TestRunner(config(task__window__ms=1000), task=Count) as runner:
        runner.advance(1000)
        assert len(runner.output("windows")) == 1


def test_the_job_ends_when_every_task_has_voted() -> None:
    """Each has its end_of_stream; the container has finished in order, and runs no more."""
    with TestRunner(config(), task=Count, partitions=2) as runner:
        feed(runner, value="end", partition=0)
        feed(runner, value="end", partition=1)
        assert not runner.is_running
        assert runner.output("windows") == [Record(None, b"over")] * 2
        with pytest.raises(TestRunnerError, match="every task has voted for the end"):
            runner.run()


def test_a_task_that_raises_fails_the_container() -> None:
    """The error is the product's line; nothing of the transaction stays, and it is read again."""
    with TestRunner(config(), task=Count) as runner:
        runner.send("kafka.in", key="a", value={"n": 1})
        runner.send("kafka.in", key="a", value="poison")
        line = r"task 'Partition 0' failed in process of in partition 0 offset 1: .*poison found"
        for _ in range(2):
            with pytest.raises(TaskFailedError, match=line):
                runner.run()
            assert not runner.is_running
            assert runner.output("kafka.out") == []
            with pytest.raises(TestRunnerError, match=r"has failed .*poison found.*restart"):
                runner.run()
            runner.restart()
            assert runner.changelog("counts") == {}


def test_what_cannot_be_decoded_fails_the_container() -> None:
    """As in production: the line names place, serde and remedy."""
    with TestRunner(config(), task=Count) as runner:
        runner.send_bytes("kafka.in", key=b"a", value=b"{")
        line = r"kafka.in partition 0 offset 0: its value .*'json'.*task\.drop"
        with pytest.raises(UndecodableError, match=line):
            runner.run()


def test_bad_records_go_to_the_dead_letters() -> None:
    """Where the job drops them, with their bytes and the reason."""
    keys = config(
        task__drop__deserialization__errors="true", task__dead__letter__stream="kafka.dead"
    )
    with TestRunner(keys, task=Count) as runner:
        runner.send_bytes("kafka.in", key=b"a", value=b"{")
        assert feed(runner, key="a", value={"n": 1}) == 2
        assert runner.store("counts").get("a") == 1
        (dead,) = runner.output("kafka.dead")
        assert (dead.key, dead.value) == (b"a", b"{")
        assert dead.headers["homeport.source.offset"] == b"0"


def test_outputs_are_decoded_where_they_have_a_serde() -> None:
    """Else they are bytes; what is not of the serde is refused."""
    keys = config(systems__kafka__streams__out__samza__key__serde="string")
    with TestRunner(
        keys, task=Count, overrides={"systems.kafka.streams.out.samza.msg.serde": "json"}
    ) as runner:
        feed(runner, key="a", value={"n": 5})
        assert runner.output("kafka.out") == [Record("a", 5)]
    with TestRunner(
        keys, task=Count, overrides={"systems.kafka.streams.out.samza.msg.serde": "long"}
    ) as runner:
        feed(runner, key="a", value={"n": 5})
        with pytest.raises(WireError, match="'long'"):
            runner.output("kafka.out")


def test_a_wrong_configuration_is_the_line_of_the_product() -> None:
    """Raised before anything starts, with key, value and remedy."""
    with pytest.raises(ConfigError, match=r"stores.counts.factory = 'rocksbd'"):
        TestRunner(config("rocksbd"), task=Count)
    with pytest.raises(ConfigError, match=r"task\.class = .*must define every method"):
        TestRunner(config(), task=BatchTask)
    with pytest.raises(ConfigError, match=r"task\.class = 'nowhere:Task'.*cannot be imported"):
        TestRunner(config(task__class="nowhere:Task"))
    with pytest.raises(ConfigError, match=r"task\.inputs"):
        TestRunner({}, task=Count)


def test_a_likely_misspelling_is_refused_as_by_run_job() -> None:
    """Where the test allows it, it is a warning."""
    with pytest.raises(ConfigError, match=r"task\.comit\.ms = '5': no program reads this key; wri"):
        TestRunner(config(task__comit__ms=5), task=Count)
    runner = TestRunner(config(task__comit__ms=5), task=Count, allow_unknown_keys=True)
    assert [w for w in runner.warnings if "task.comit.ms" in w]


def test_an_output_that_the_job_does_not_have_is_refused() -> None:
    """A misspelt name would pass for an output without records."""
    with TestRunner(config(task__outputs="kafka.sums"), task=Count) as runner:
        assert runner.output("sums") == runner.output("kafka.sums") == []
        with pytest.raises(
            TestRunnerError, match=r"'kafka.sms' is no output.*; known: kafka.sums$"
        ):
            runner.output("kafka.sms")
        assert runner.output("kafka.in") == []
    with TestRunner(config(), task=Count) as runner:  # what it declares not, it may send to
        assert runner.output("kafka.sms") == []
    topics: dict[str, dict[str, str]] = {"kafka.sms": {}}
    with TestRunner(config(task__outputs="kafka.sums"), task=Count, topics=topics) as runner:
        assert runner.output("kafka.sms") == []


def test_a_topic_is_not_taken_for_a_system_of_its_own() -> None:
    """Where a default system is given; else the first input names it."""
    with pytest.raises(ConfigError, match=r"write kafka\.web\.clicks, if that is meant"):
        TestRunner(config(task__inputs="web.clicks", job__default__system="kafka"), task=Count)


def test_what_a_test_asks_for_must_be_there() -> None:
    """One line names what there is."""
    with TestRunner(config(), task=Count, partitions=2) as runner:
        with pytest.raises(TestRunnerError, match=r"'kafka.inn' is no input.*known: kafka.in"):
            runner.send("kafka.inn", value={})
        with pytest.raises(TestRunnerError, match="no partition 2, it has 0 to 1"):
            runner.send("kafka.in", value={}, partition=2)
        with pytest.raises(TestRunnerError, match="mean 2 tasks, not one"):
            runner.store("counts")
        with pytest.raises(KeyError, match="known: counts"):
            runner.store("count", partition=0)
        with pytest.raises(TestRunnerError, match="no store 'count' has a changelog"):
            runner.changelog("count", partition=0)
        with pytest.raises(TypeError, match="'string' carries str"):
            runner.send("kafka.in", key=1)
        with pytest.raises(TestRunnerError, match="no step 'comit'; known: end-tasks"):
            runner.crash_before("comit")
        with pytest.raises(TestRunnerError, match="the step 'commit' did not come"):
            runner.crash_before("commit")
        assert runner.is_running
    keys = config()
    del keys["systems.kafka.streams.in.samza.msg.serde"]
    with (
        TestRunner(keys, task=Count) as runner,
        pytest.raises(TestRunnerError, match=r"no samza\.msg\.serde.*not dict"),
    ):
        runner.send("kafka.in", value={})
    with pytest.raises(TestRunnerError, match="use it in a with statement"):
        TestRunner(keys, task=Count).run()
    with pytest.raises(TestRunnerError, match="it is closed"):
        runner.restart()
    with pytest.raises(StoreError, match="write fewer"):
        _NoWorkers().run([])


def test_a_folder_of_the_test_keeps_the_files(tmp_path: Path) -> None:
    """Its own folder is gone at the end; that of a test is the test's."""
    with TestRunner(config("rocksdb"), task=Count, folder=tmp_path) as runner:
        feed(runner, key="a", value={"n": 1})
    assert list(tmp_path.glob("state/counts/Partition_0/OFFSET"))


def test_the_fixture_starts_and_stops(job_runner: Callable[..., TestRunner]) -> None:
    """Each call is a runner that has started."""
    runners = [job_runner(config(), task=Count) for _ in range(2)]
    runners[0].send("kafka.in", key="a", value={"n": 1})
    assert [runner.run() for runner in runners] == [1, 0]


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_kafka(key: bytes, signed: int) -> None:
    """The values are those of Kafka's own tests."""
    assert murmur2(key) == signed % (1 << 32)


def test_a_record_without_a_key_goes_to_the_first_partition() -> None:
    """It does so each time, where Kafka picks one."""
    assert partition_of(None, 7) == 0
