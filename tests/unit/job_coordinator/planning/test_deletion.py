"""Which topics the end of a job deletes: its own, by their ids, and none that is anybody's else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.metadata.topics import (
    ChangelogTopicManager,
    ChangelogTopicRecord,
    CheckpointTopicManager,
    InputTopicManager,
    OutputTopicManager,
)
from homeport.job_coordinator.planning.deletion import (
    Fate,
    FoundTopic,
    OtherJobs,
    OwnTopic,
    changelogs_of,
    deleting_changelogs,
    fates,
    own_topics,
    uses_in_words,
)

CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "task.class": "m:T",
        "task.inputs": "kafka.in",
        "task.outputs": "kafka.out,kafka.old-out",
        "task.dead.letter.stream": "kafka.dead",
        "task.drop.deserialization.errors": "true",
        "systems.kafka.consumer.bootstrap.servers": "h:1",
        "stores.s.factory": "rocksdb",
        "stores.s.key.serde": "string",
        "stores.s.msg.serde": "string",
        "stores.s.changelog": "log",
    }
)
LOG, FORMER, OUT = (SystemStream("kafka", name) for name in ("log", "former", "out"))
CHECKPOINTS = SystemStream("kafka", "__samza_checkpoint_ver_1_for_j_1")
NO_OTHERS = OtherJobs({})
COMPACTED = FoundTopic("id", "compact")


def of(stream: SystemStream, topic_id: str | None = "id", *, is_output: bool = False) -> OwnTopic:
    """A topic of the job."""
    return OwnTopic(stream, "a topic", topic_id, is_output=is_output)


def fate(
    topic: OwnTopic,
    now: FoundTopic = COMPACTED,
    others: OtherJobs = NO_OTHERS,
    *,
    config: Config = CONFIG,
    keep_outputs: bool = False,
) -> Fate:
    """What becomes of it, as it is now."""
    (found,) = fates([topic], {topic.stream: now}, config, others, keep_outputs=keep_outputs)
    return found


def test_a_job_owns_what_its_configuration_and_its_records_name() -> None:
    """Also the changelog of a store that had another name, and an output that is not declared."""
    stream = InMemoryCoordinatorStream()
    ChangelogTopicManager(stream).write(
        {LOG: ChangelogTopicRecord("id-1", "s"), FORMER: ChangelogTopicRecord("id-2", "t")}
    )
    CheckpointTopicManager(stream).write(CHECKPOINTS, "id-3")
    OutputTopicManager(stream).write(OUT, "id-4")
    OutputTopicManager(stream).write(SystemStream("kafka", "gone"), "id-5")
    stream.catch_up()
    found = own_topics(CONFIG, stream)
    assert [(topic.stream.stream, topic.topic_id) for topic in found] == [
        (CHECKPOINTS.stream, "id-3"),
        ("log", "id-1"),
        ("former", "id-2"),
        ("dead", None),
        ("out", "id-4"),
        ("old-out", None),
        ("gone", "id-5"),
    ]
    assert [topic.what for topic in found][:4] == [
        "the checkpoint topic",
        "the changelog of store s",
        "the former changelog of store t",
        "an output",
    ]
    outputs = [topic.stream.stream for topic in found if topic.is_output]
    assert outputs == ["dead", "out", "old-out", "gone"]
    assert own_topics(Config(), stream) == ()
    without = CONFIG.merged({"task.checkpoint.factory": "none"})
    assert own_topics(without, stream)[0].stream == LOG


def test_a_changelog_is_named_with_its_system_or_without() -> None:
    """Without one it is in the changelogs' system, else in the job's; no value names none."""
    more = {
        "stores.with.changelog": "other.log",
        "stores.blank.changelog": " ",
        "stores.plain.changelog": "plain",
    }
    config = CONFIG.merged(more)
    expected = {
        "s": LOG,
        "with": SystemStream("other", "log"),
        "plain": SystemStream("kafka", "plain"),
    }
    assert dict(changelogs_of(config)) == expected
    elsewhere = dict(changelogs_of(config.merged({"job.changelog.system": "third"})))
    assert elsewhere["plain"] == SystemStream("third", "plain")
    assert elsewhere["with"] == expected["with"]
    bare = Config({"stores.s.changelog": "log"})
    assert dict(changelogs_of(bare)) == {"s": SystemStream("", "log")}


@pytest.mark.parametrize(
    ("key", "value", "deleting"),
    [
        ("stores.s.rocksdb.ttl.ms", "0", [LOG]),
        ("stores.s.rocksdb.ttl.ms", "1000", [LOG]),
        ("stores.s.rocksdb.ttl.ms", "-1", []),
        ("stores.s.changelog.kafka.cleanup.policy", "compact,delete", [LOG]),
        ("stores.s.changelog.kafka.cleanup.policy", "compact", []),
    ],
)
def test_a_changelog_deletes_by_age_where_a_key_asks_for_it(
    key: str, value: str, deleting: list[SystemStream]
) -> None:
    """A topic that deletes is this job's changelog only then."""
    config = CONFIG.merged({key: value})
    assert list(deleting_changelogs(config)) == deleting
    found = fate(of(LOG, None), FoundTopic("id", "delete"), config=config)
    assert found.is_deleted is bool(deleting)


def test_topics_of_repartitions_are_the_jobs_own_though_it_reads_them() -> None:
    """Also of one that it has no more; what another job sends to itself is an input."""
    config = CONFIG.merged({"task.repartition.now": "2"})
    topics = {
        n: SystemStream("kafka", f"__homeport_repartition_{n}") for n in ("j_1_now", "j_1_old")
    }
    other = SystemStream("kafka", "__homeport_repartition_k_1_now")
    stream = InMemoryCoordinatorStream()
    InputTopicManager(stream, 1).write(dict.fromkeys((*topics.values(), other), "id"))
    stream.catch_up()
    own = [
        topic for topic in own_topics(config, stream) if topic.stream in {*topics.values(), other}
    ]
    assert [topic.stream for topic in own] == [*topics.values()]
    now = FoundTopic("id", "delete")
    assert all(fate(topic, now, config=config).is_deleted for topic in own)
    assert not fate(own[0], FoundTopic("new", "delete"), config=config).is_deleted


def test_a_topic_that_is_not_there_has_no_fate() -> None:
    """A deletion that was cut off has deleted it."""
    assert fates([of(LOG)], {}, CONFIG, NO_OTHERS, keep_outputs=False) == ()


@pytest.mark.parametrize(
    ("topic", "now", "reason"),
    [
        (of(LOG), FoundTopic("other", "compact"), "it was recreated since the job used it"),
        (of(LOG, None), FoundTopic("id", "delete"), "its cleanup.policy is 'delete', which is no"),
        (of(SystemStream("kafka", "in")), COMPACTED, "it is an input of the job"),
        (of(OUT, None, is_output=True), COMPACTED, "the job did not make it"),
        (of(OUT, is_output=True), FoundTopic("x", "delete"), "it was recreated since"),
    ],
)
def test_what_is_not_the_jobs_own_is_kept(topic: OwnTopic, now: FoundTopic, reason: str) -> None:
    """With the reason."""
    found = fate(topic, now)
    assert not found.is_deleted
    assert found.reason.startswith(f"a topic; {reason}")


def test_its_own_topics_are_deleted() -> None:
    """By the id; without a record by the policy, as a changelog is compacted or deletes by age."""
    for topic in (of(LOG), of(LOG, None), of(OUT, is_output=True)):
        assert fate(topic) == Fate(topic, is_deleted=True, reason="a topic")
    aging = CONFIG.merged({"stores.s.rocksdb.ttl.ms": "5000"})
    assert fate(of(LOG, None), FoundTopic("id", "delete"), config=aging).is_deleted


def test_outputs_are_kept_where_that_is_asked_or_another_job_cannot_be_read() -> None:
    """Changelogs are the job's own all the same."""
    output = of(OUT, is_output=True)
    assert fate(output, keep_outputs=True).reason == "a topic; --keep-outputs"
    unread = OtherJobs({}, ("__samza_coordinator_x_1",))
    assert "__samza_coordinator_x_1 cannot be read" in fate(output, others=unread).reason
    assert fate(of(LOG), others=unread, keep_outputs=True).is_deleted


def test_the_uses_of_a_job_are_named() -> None:
    """Inputs, adjunct inputs, outputs, and its own topics."""
    adjunct = CONFIG.merged(
        {
            "task.inputs": "kafka.in,kafka.rates",
            "stores.r.factory": "rocksdb",
            "stores.r.key.serde": "string",
            "stores.r.msg.serde": "string",
            "stores.r.adstore.input": "kafka.rates",
        }
    )
    found = dict(reversed([*uses_in_words(adjunct, "job x")]))
    assert found["rates"] == "job x has it as the input of store r"
    assert found["in"] == "job x has it as an input of the job"
    assert found["dead"] == "job x has it as an output of the job"
    assert found["log"] == "job x has it as the changelog of store 's'"


_NAMES = st.sampled_from(["in", "log", "out", "former", "dead"])
_IDS = st.sampled_from(["a", "b"])
_OWN = st.builds(
    OwnTopic,
    _NAMES.map(lambda name: SystemStream("kafka", name)),
    st.just("a topic"),
    st.none() | _IDS,
    st.booleans(),
)
_FOUND = st.builds(FoundTopic, _IDS, st.sampled_from(["compact", "delete", "compact,delete"]))


@given(
    st.lists(_OWN, unique_by=lambda topic: topic.stream),
    st.dictionaries(_NAMES.map(lambda name: SystemStream("kafka", name)), _FOUND),
    st.dictionaries(_NAMES, st.just("in use")),
    st.booleans(),
    st.booleans(),
)
def test_nothing_is_deleted_that_may_be_anothers(
    own: list[OwnTopic],
    found: dict[SystemStream, FoundTopic],
    uses: dict[str, str],
    is_unread: bool,  # noqa: FBT001 - drawn
    keep_outputs: bool,  # noqa: FBT001 - drawn
) -> None:
    """Whatever the records are: no input, no topic of another id, none that another job names."""
    others = OtherJobs(uses, ("unread",) if is_unread else ())
    judged = fates(own, found, CONFIG, others, keep_outputs=keep_outputs)
    assert [f.topic for f in judged] == [topic for topic in own if topic.stream in found]
    for each in judged:
        topic, name = each.topic, each.topic.stream.stream
        if each.is_deleted:
            assert name != "in"
            assert name not in uses
            assert topic.topic_id in {None, found[topic.stream].topic_id}
            assert not (topic.is_output and (topic.topic_id is None or keep_outputs or is_unread))
