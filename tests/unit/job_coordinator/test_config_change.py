"""A change of one key: what is refused before anything is written, and what is said of the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

import pytest

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.config_diff import ConfigDiff
from homeport.job_coordinator import config_change
from homeport.job_coordinator.config_change import (
    ConfigChange,
    check_deletion,
    check_key,
    checked_change,
    refuse_written,
    require_model,
    require_model_here,
)
from homeport.job_coordinator.grouper.job_model_calculator import input_streams
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStream, SystemStreamPartition
from homeport.job_coordinator.planning.input_watch import InputsSeen

GOOD = Config(
    {
        "job.name": "flights",
        "job.default.system": "kafka",
        "job.container.count": "2",
        "task.class": "plane.summary:Summary",
        "task.inputs": "kafka.flights",
        "systems.kafka.consumer.bootstrap.servers": "localhost:9092",
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "json",
        "stores.planes.changelog": "planes-changelog",
    }
)


def changed(
    key: str,
    value: str | None,
    before: Config = GOOD,
    file: Config = GOOD,
    *,
    has_state: bool = True,
    most: int = 4,
) -> ConfigChange:
    """The change of a job whose inputs have ``most`` partitions."""

    def check_model(config: Config) -> None:
        count = keys.JOB_CONTAINER_COUNT.read(config)
        if count > most:
            raise ConfigError("job.container.count", str(count), f"at most {most}", "write less")

    return checked_change(key, value, before, file, has_state=has_state, check_model=check_model)


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        (
            "stores.plane.rocksdb.compression",
            "lz4",
            "no store 'plane', but planes: the value counts",
        ),
        ("systems.kafak.samza.offset.default", "oldest", "no system 'kafak', but kafka: the value"),
        ("stores.planes.rocksdb.compression", "lz4", None),
        ("stores.new.factory", "rocksdb", None),
        ("stores.default.changelog.replication.factor", "1", None),
        ("systems.other.consumer.bootstrap.servers", "localhost:1", None),
        ("systems.kafka.samza.offset.default", "oldest", None),
        ("my.own", "1", None),
    ],
)
def test_a_store_or_a_system_that_the_job_lacks_is_one_line(
    key: str, value: str, line: str | None
) -> None:
    """With those that it has; the key that makes one is no mistake."""
    found = [*ConfigChange(GOOD, GOOD.merged({key: value})).missing(key)]
    assert len(found) == (line is not None)
    assert all(str(line) in said for said in found)


def test_a_job_without_stores_has_none_to_name() -> None:
    """The line ends where there is nothing to list."""
    key = "stores.plane.rocksdb.compression"
    (line,) = ConfigChange(Config(), Config({key: "lz4"})).missing(key)
    assert line == (
        f"--key = '{key}': the job has no store 'plane': the value counts once there is one"
    )


@pytest.mark.parametrize(
    ("key", "value", "meaning"),
    [
        ("job.container.count", "3", "the running job takes it within 2000 ms"),
        ("cluster-manager.container.retry.count", "1", "the running job takes it within 2000 ms"),
        ("task.commit.ms", "5", "its containers take it within 2000 ms: nothing restarts"),
        (
            "task.inputs",
            "kafka.flights,kafka.more",
            "takes it within 2000 ms: containers whose tasks get or lose an input restart",
        ),
        (
            "my.own.key",
            "5",
            "the former value comes back (--at-once: all actives together, unwatched)",
        ),
        ("yarn.queue", "fast", "used from the next deployment; the running job goes on as it is"),
        ("task.commit.ms", "10000", "nothing changes"),
        ("job.container.count", " 02 ", "nothing changes"),
    ],
)
def test_the_meaning_is_the_keys_liveness(key: str, value: str, meaning: str) -> None:
    """For a job that runs; one that does not uses everything from its next start."""
    change = changed(key, value)
    assert change.meaning(is_running=True).endswith(meaning)
    if "nothing" not in meaning:
        assert change.meaning(is_running=False) == "used from the job's next start"


def test_a_deletion_brings_back_the_deployed_value() -> None:
    """The file's value, else the default, is what the key means then."""
    before = GOOD.merged({"job.container.count": "4", "task.commit.ms": "5"})
    assert changed("job.container.count", None, before).after["job.container.count"] == "2"
    assert "task.commit.ms" not in changed("task.commit.ms", None, before).after


def test_after_a_deletion_the_next_change_has_the_deployed_value() -> None:
    """The stream has no such key then, and the ApplicationMaster reads the deployment's."""
    seen: list[Config] = []
    stream = Config({k: v for k, v in GOOD.items() if k != "task.inputs"})
    checked_change(
        "job.container.count", "1", stream, GOOD, has_state=True, check_model=seen.append
    )
    assert [config["task.inputs"] for config in seen] == [GOOD["task.inputs"]]


def test_before_the_first_deployment_the_file_counts() -> None:
    """The stream is empty then."""
    assert changed("job.container.count", "3", Config()).before == GOOD
    with pytest.raises(ConfigError, match="at most 4"):
        changed("job.container.count", "5", Config())


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("task.spark.driver.memory.mb", "4096", "it must be below cluster-manager"),
        ("stores.planes.changelog", "other.log", "it is 'planes-changelog', and settled once"),
        ("stores.planes.msg.serde", "string", "it is 'json', and settled once a job has state"),
        ("task.checkpoint.system", "other", "it is 'its default', and settled"),
        ("job.container.count", "5", "at most 4"),
    ],
)
def test_a_change_that_breaks_a_rule_is_refused(key: str, value: str, rule: str) -> None:
    """Rules across keys, what is settled with state, and the inputs as they are."""
    with pytest.raises(ConfigError, match=rule) as caught:
        changed(key, value)
    assert str(caught.value).startswith(f"{key} = {value!r}")


def counts_are(monkeypatch: pytest.MonkeyPatch, **counts: int) -> None:
    """Kafka has these topics, with so many partitions."""
    found = {SystemStream("kafka", name): count for name, count in counts.items()}
    monkeypatch.setattr(config_change, "counts_now", lambda _config: found)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("kafka.flights,kafka.gone", "must exist, and system 'kafka' has no 'gone'"),
        ("kafka.flights,kafka.three", "it was \"no task 'Partition 2'\" when the job's state"),
        ("kafka.like", "and none of the inputs that made its state would stay; add the new"),
        ("kafka.flights,planes-changelog", "must have the form system.stream"),
        ("kafka.flights,kafka.planes-changelog", "would be the topic that is an input of"),
        ("kafka.flights,kafka.like", None),
        ("kafka.flights,kafka.four", None),
        ("kafka.flights,kafka.one", None),
    ],
)
def test_another_input_is_judged_by_the_tasks_that_the_job_has(
    monkeypatch: pytest.MonkeyPatch, value: str, rule: str | None
) -> None:
    """COORD, benefit 3: what would mix state up is refused, before it is written."""
    counts_are(monkeypatch, flights=2, like=2, three=3, four=4, one=1)
    ssps = [SystemStreamPartition("kafka", "flights", number) for number in range(2)]
    names = [TaskName(f"Partition {number}") for number in range(2)]
    before = PreviousAssignment(
        task_partitions={n: frozenset({ssp}) for n, ssp in zip(names, ssps, strict=True)},
        changelog_partitions={n: number for number, n in enumerate(names)},
    )
    check = require_model_here(GOOD, "task.inputs", value, print, before)

    def change() -> ConfigChange:
        return checked_change("task.inputs", value, GOOD, GOOD, has_state=True, check_model=check)

    if rule is None:
        assert change().diff == ConfigDiff(live=("task.inputs",))
        return
    with pytest.raises(ConfigError, match=re.escape(rule)):
        change()


def test_keys_that_belong_together_are_one_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store and the input that fills it: each alone breaks a rule, or is another change."""
    counts_are(monkeypatch, flights=2, models=2)
    inputs, value = "task.inputs", "kafka.flights,kafka.models"
    store = {k: v for k, v in MODELS.items() if k != inputs}
    store["stores.models.adstore.input"] = "kafka.models"
    judge = partial(checked_change, file=GOOD, has_state=True, check_model=require_model)
    change = judge(inputs, value, GOOD, also=store)
    names = tuple(sorted(store))
    assert change.diff == ConfigDiff(live=(inputs,), restarts_containers=names)
    assert "its containers restart, all at once" in change.meaning(is_running=True)
    assert judge(inputs, None, change.after, also=dict.fromkeys(store)).after == GOOD
    with pytest.raises(ConfigError, match="it is no input of the job"):
        judge(inputs, None, change.after)
    with pytest.raises(ConfigError, match="the stream is an input already"):
        judge("stores.models.factory", None, change.after, also=dict.fromkeys(store))


def test_a_key_that_no_program_reads_hides_no_other_key_of_its_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By force it is written; what comes with it is checked, and is what the change means."""
    counts_are(monkeypatch, flights=2)
    judge = partial(checked_change, "task.comit.ms", "1", GOOD, GOOD, has_state=True)
    with pytest.raises(ConfigError, match="the input stream must exist"):
        judge(check_model=require_model, also={"task.inputs": "kafka.flights,kafka.none"})
    change = judge(check_model=require_model, also={"task.commit.ms": "70"})
    assert "its containers" in change.meaning(is_running=True)


def test_an_input_whose_topic_was_recreated_meanwhile_is_refused_before_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The running job would not take it; where it may begin again, a submission does."""
    counts_are(monkeypatch, flights=2, like=2)
    both = "kafka.flights,kafka.like"
    ids = {SystemStream("kafka", name): f"{name}-2" for name in ("flights", "like")}

    def now(config: Config) -> InputsSeen:
        return InputsSeen({}, {s: ids[s] for s in input_streams(config)})

    monkeypatch.setattr(config_change, "inputs_now", now)
    known = {**ids, SystemStream("kafka", "like"): "like-1"}
    check = require_model_here(GOOD, "task.inputs", both, print, NOTHING, known)
    check(GOOD)
    wanted = GOOD.merged({"task.inputs": both})
    with pytest.raises(ConfigError, match=r"kafka\.like was deleted and recreated"):
        checked_change("task.inputs", both, GOOD, GOOD, has_state=True, check_model=check)
    check(wanted.merged({"job.input.recreated": "begin"}))


OUTPUT = {"task.outputs": "kafka.sums"}
MODELS = {
    "task.inputs": "kafka.flights,kafka.models",
    "stores.models.factory": "rocksdb",
    "stores.models.key.serde": "string",
    "stores.models.msg.serde": "string",
}


@pytest.mark.parametrize(
    ("before", "key", "value", "rule"),
    [
        (OUTPUT, "task.inputs", "kafka.flights,kafka.sums", "it is one of task.inputs, and would"),
        (
            MODELS,
            "stores.models.adstore.input",
            "kafka.models",
            "is an input already, and its records go to the tasks: store 'models' would lack those",
        ),
        (
            {**MODELS, "stores.models.adstore.input": "kafka.models"},
            "stores.models.adstore.input",
            None,
            "and its records go to store 'models': the tasks would lack those",
        ),
        (
            {"systems.kafka.streams.more.samza.msg.serde": "none-such"},
            "task.inputs",
            "kafka.flights,kafka.more",
            "none-such",
        ),
    ],
)
def test_an_input_that_is_something_else_is_refused(
    before: Mapping[str, str], key: str, value: str | None, rule: str
) -> None:
    """An output, an input of the tasks, the stream of a store, one without a serde."""
    with pytest.raises(ConfigError, match=re.escape(rule)):
        changed(key, value, GOOD.merged(before), GOOD.merged(MODELS))


def test_without_state_nothing_is_settled() -> None:
    """A job that never kept anything may change how it keeps it."""
    change = changed("stores.planes.msg.serde", "string", has_state=False)
    assert "next deployment" in change.meaning(is_running=True)


def test_a_fault_that_was_there_before_does_not_forbid_another_change() -> None:
    """A file that this version refuses can be mended key by key."""
    faulty = GOOD.merged({"task.class": "org.acme.Task", "job.container.count": "9"})
    assert changed("task.commit.ms", "5", faulty).after["task.commit.ms"] == "5"
    assert changed("task.class", "my:Task", faulty).after["task.class"] == "my:Task"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("job.name", "x"),
        ("job.id", "2"),
        ("job.coordinator.system", "x"),
        ("yarn.am.tracking.url", "http://h/"),
        ("task.commit.ms", "soon"),
        ("job.elasticity.factor", "2"),
    ],
)
def test_some_keys_and_values_are_refused(key: str, value: str) -> None:
    """What names the job, what the AM writes, and values that are not of the type."""
    with pytest.raises(ConfigError):
        check_key(key, value)


def test_what_names_the_job_is_taken_back_only_where_a_tool_has_written_it() -> None:
    """Samza's tool checks nothing: a deployment would be another job's."""
    check_deletion("job.id", is_set_by_hand=True)
    check_deletion("task.commit.ms", is_set_by_hand=False)
    with pytest.raises(ConfigError, match="it says which job this is"):
        check_deletion("job.id", is_set_by_hand=False)
    refuse_written(Config({"job.name": "flights", "task.commit.ms": "5"}), GOOD)
    with pytest.raises(ConfigError, match=r"config set job\.name --delete") as caught:
        refuse_written(Config({"job.name": "other"}), GOOD)
    assert str(caught.value).startswith("job.name = 'other': it says which job this is")


def test_what_run_job_takes_from_the_file_alone_is_written_there() -> None:
    """What the running job cannot take is refused; what restarts containers is warned of."""
    with pytest.raises(ConfigError, match=r"from the properties file alone; change it in the prop"):
        check_key("yarn.python.executable", "/usr/bin/python3")
    with pytest.raises(ConfigError, match="from the properties file alone"):
        check_key("stores.planes.key.serde", "my:Serde")
    (warning,) = check_key("task.class", "my:Task")
    assert warning.startswith("task.class: run-job takes code that a tool imports")
    assert check_key("stores.planes.key.serde", "json") == ()
    assert check_key("yarn.python.executable", None) == ()


def test_a_tools_model_is_made_of_what_its_operator_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's address is the file's; a grouper that the stream alone names is not imported."""
    asked: list[Config] = []
    monkeypatch.setattr(config_change, "require_model", lambda config, *_: asked.append(config))
    servers = "systems.kafka.consumer.bootstrap.servers"
    lines: list[str] = []
    of_count = require_model_here(GOOD, "job.container.count", "3", lines.append)
    of_count(GOOD.merged({servers: "evil:9092"}))
    assert not lines
    assert [config[servers] for config in asked] == ["localhost:9092"]
    key = "task.name.grouper.factory"
    named = GOOD.merged({key: "evil:Grouper", "task.class": "other:Task"})
    of_count(named)
    assert len(asked) == 1
    (warning,) = lines
    assert warning.startswith("it is not checked that a JobModel can be made: task.name.grouper")
    assert "what the stream alone names" in warning
    require_model_here(GOOD, key, "evil:Grouper", lines.append)(named)
    assert len(asked) == 2


def test_an_older_name_of_a_key_is_checked_as_the_key() -> None:
    """No JobModel comes of it otherwise."""
    with pytest.raises(ConfigError, match="at most 4"):
        changed("yarn.container.count", "5", GOOD.merged({"job.container.count": ""}), most=4)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("task.comit.ms", "write task.commit.ms, if that is meant"),
        ("taks.commit.ms", "write task.commit.ms, if that is meant"),
        ("task.my.own", "begin the name of a key of the job's own with another word"),
        ("job.jmx.enabled", "no program of the job is a JVM that offers JMX"),
    ],
)
def test_a_key_that_no_program_reads_is_refused_with_its_neighbour(key: str, hint: str) -> None:
    """A typo restarts nothing, as it is not written; --force writes it; a deletion cleans up."""
    with pytest.raises(ConfigError, match="no program reads this key") as caught:
        check_key(key, "true")
    assert hint in str(caught.value)
    assert "--force" in caught.value.remedy
    assert check_key(key, "true", is_forced=True)
    assert check_key(key, None) == ()
    change = changed(key, "true")
    assert change.meaning(is_running=True) == "no program reads it: nothing changes"


@pytest.mark.parametrize(
    ("key", "value"),
    [("app.name", "flights"), ("app.id", "2"), ("app.id", " 2 "), ("job.jmx.enabled", "no")],
)
def test_a_key_of_samzas_is_judged_within_the_job(key: str, value: str) -> None:
    """A value that the job has is none that is missing there; the key is read by nothing."""
    job = GOOD.merged({"job.id": "2"})
    with pytest.raises(ConfigError) as caught:
        check_key(key, value, job)
    assert caught.value.rule == (
        "no program reads this key, which is Samza's, and the value asks for what happens here "
        "anyway"
    )
    assert check_key(key, value, job, is_forced=True) == ()


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("app.name", "other", "give job.name this value"),
        ("app.id", "2", "give job.id this value"),
        ("streams.flights.samza.priority", "5", "write systems.<system>.streams.<stream>"),
        ("systems.kafka.default.stream.samza.key.serde", "my:Serde", "without default.stream"),
        ("job.elasticity.factor", "2", "write 1, or remove it"),
    ],
)
def test_a_refused_key_of_samzas_is_written_by_force_with_a_warning(
    key: str, value: str, remedy: str
) -> None:
    """The running job leaves it out; the next deployment does not take it."""
    with pytest.raises(ConfigError) as caught:
        check_key(key, value, GOOD)
    assert str(caught.value).startswith(f"{key} = {value!r}: ")
    assert remedy in caught.value.remedy
    assert "no effect" not in str(caught.value)
    (warning,) = check_key(key, value, GOOD, is_forced=True)
    assert warning == f"{caught.value}; run-job refuses it while it stands"
    change = changed(key, value)
    assert change.meaning(is_running=True) == "no program reads it: nothing changes"
    assert [*change.missing(key)] == []


def test_an_older_name_beside_the_jobs_present_one_is_warned_of() -> None:
    """It would be written for nothing."""
    (warning,) = check_key("yarn.container.count", "5", GOOD)
    assert warning.startswith("yarn.container.count has no effect: job.container.count, its pre")
    assert check_key("yarn.container.count", "5") == ()


def test_the_containers_that_restart_are_named() -> None:
    """Before it is written; of very many the first ones."""
    change = changed("my.own.key", "5")
    found = change.meaning(is_running=True, restarting={"1", "0"}, is_at_once=True)
    assert found.endswith(": its containers restart, all at once: 0, 1")
    rolling = change.meaning(is_running=True, restarting={"1", "0"})
    assert "one after the other, standbys first, each watched for 60 s; where one fails" in rolling
    assert rolling.endswith("(--at-once: all actives together, unwatched): 0, 1")
    many = change.meaning(is_running=True, restarting={str(n) for n in range(30)})
    assert many.endswith(" and 10 more")


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1" + "0" * 5000, "3600000", "soon"])
def test_an_interval_beyond_its_range_can_be_deleted(value: str) -> None:
    """It was never in force: the running job looks as often as by default."""
    key = "job.coordinator.catch-up.interval.ms"
    change = changed(key, None, GOOD.merged({key: value}), GOOD.merged({key: "500"}))
    assert change.meaning(is_running=True) == "the running job takes it within 2000 ms"
