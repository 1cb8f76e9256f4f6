"""Checks that a Kafka cluster and a job's topics are fit for the job. PURE.

Source: docs/faults-kafka.md, which has the consequence of each fault.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from homeport.appmaster.doctor.finding import Check, Finding
from homeport.config.declarations import all_keys as keys
from homeport.config.number_text import whole_of

TRANSACTIONAL_ID_EXPIRATION_MS = "transactional.id.expiration.ms"
TRANSACTION_MAX_TIMEOUT_MS = "transaction.max.timeout.ms"
MIN_IN_SYNC = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"
TRANSACTION_STATE = "__transaction_state"
OUTPUT = "output"
"""``TopicUse.what`` of a topic that the job writes."""

_DAY_MS = 86_400_000
_WANTED_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The brokers of a partition, by their numbers; ``leader`` None: it has no leader."""

    number: int
    leader: int | None
    replicas: frozenset[int]
    in_sync: frozenset[int]


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic that exists. ``rights``: this user's rights on it; None: not known."""

    partitions: Sequence[PartitionFacts]
    config: Mapping[str, str]
    rights: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class TopicUse:
    """A job's use of a topic.

    ``rights``: the rights that the job needs. ``key``: the job's key that names the topic; empty:
    no key does. ``is_state``: a lost record is lost state. ``is_compacted``: the topic must be
    compacted. ``is_made``: ``run-job`` or the job makes the topic where it is absent.
    """

    name: str
    what: str
    rights: frozenset[str]
    key: str = ""
    is_state: bool = False
    is_compacted: bool = False
    is_made: bool = False


def absent_remedy(uses: Sequence[TopicUse], how: str = "") -> str:
    """Return what to do where the topics of ``uses`` are absent; ``how`` they are created."""
    them, names = ("it", "name") if len(uses) == 1 else ("them", "names")
    has_output = any(use.what == OUTPUT for use in uses)
    made = f", or set {keys.TASK_OUTPUTS_CREATE_PARTITIONS.name}" if has_output else ""
    return f"create {them}{how}{made}, or correct the {names}"


@dataclass(frozen=True, slots=True)
class KafkaFacts:
    """One system, by the answers of its brokers.

    ``brokers``: {number: its configuration}. ``topics``: {name: facts} of those that exist.
    """

    system: str
    brokers: Mapping[int, Mapping[str, str]]
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)


def check_brokers(facts: KafkaFacts, transaction_timeout_ms: int) -> Iterator[Finding]:
    """Check the number of brokers, and their settings for transactions.

    ``transaction_timeout_ms``: the job's.
    """
    where = f"system {facts.system!r}"
    count = len(facts.brokers)
    brokers = Check("kafka.brokers", where)
    if count < _WANTED_REPLICAS:
        yield brokers.warning(
            f"{count} of {_WANTED_REPLICAS} brokers",
            f"run {_WANTED_REPLICAS} or more, so that each topic has {_WANTED_REPLICAS} replicas; "
            "with fewer, the loss of a broker stops the job or loses its state",
        )
    else:
        yield brokers.ok(f"{count} brokers")
    for number, config in sorted(facts.brokers.items()):
        yield from _broker(f"{where}, broker {number}", config, transaction_timeout_ms)


def _broker(where: str, config: Mapping[str, str], timeout_ms: int) -> Iterator[Finding]:
    expiration = _number(config, TRANSACTIONAL_ID_EXPIRATION_MS)
    id_expiration = Check("kafka.transactional-id-expiration", where)
    if expiration is not None and expiration < _DAY_MS:
        yield id_expiration.warning(
            f"{TRANSACTIONAL_ID_EXPIRATION_MS} = {expiration}: a container that writes nothing for "
            "so long has to start again",
            f"set it to {_DAY_MS} or more (Kafka's default is 604800000, seven days)",
        )
    elif expiration is not None:
        yield id_expiration.ok(f"{TRANSACTIONAL_ID_EXPIRATION_MS} = {expiration}")
    most = _number(config, TRANSACTION_MAX_TIMEOUT_MS)
    transaction_timeout = Check("kafka.transaction-timeout", where)
    if most is not None and most < timeout_ms:
        yield transaction_timeout.error(
            f"{TRANSACTION_MAX_TIMEOUT_MS} = {most}, and the job asks for {timeout_ms}: the broker "
            "refuses its transactions",
            f"set the broker's to {timeout_ms} or more, or the producer's transaction.timeout.ms "
            f"to {most} or less",
        )
    elif most is not None:
        yield transaction_timeout.ok(f"{TRANSACTION_MAX_TIMEOUT_MS} = {most}")


def check_topic(facts: KafkaFacts, use: TopicUse) -> Iterator[Finding]:
    """Check that a topic of the job exists, takes records, survives a broker, and may be used."""
    where = f"topic {use.name} at {facts.system} ({use.what})"
    topic = facts.topics.get(use.name)
    if topic is None:
        topic_check = Check("kafka.topic", where)
        if use.is_made:
            yield topic_check.ok("does not exist yet: run-job makes it")
        else:
            yield topic_check.error("does not exist", absent_remedy([use]))
        return
    yield from _replicas(where, topic, use, len(facts.brokers))
    yield from _settings(where, topic, use)
    yield from _rights(where, topic, use)


def _replicas(where: str, topic: TopicFacts, use: TopicUse, brokers: int) -> Iterator[Finding]:
    leaderless = [p.number for p in topic.partitions if p.leader is None]
    if leaderless:
        down = {n for p in topic.partitions if p.leader is None for n in p.replicas}
        yield Check("kafka.leader", where).error(
            f"partitions without a leader: {_listed(leaderless)}",
            f"start the brokers {_listed(down)}",
        )
    thin = [p for p in topic.partitions if p.in_sync < p.replicas]
    least = _number(topic.config, MIN_IN_SYNC) or 1
    stuck = [p for p in thin if len(p.in_sync) < min(least, len(p.replicas))]
    missing = {n for p in thin for n in p.replicas - p.in_sync}
    in_sync = Check("kafka.in-sync", where)
    if stuck:
        yield in_sync.error(
            f"partitions that take no record, with fewer than {MIN_IN_SYNC} = {least} replicas in "
            f"sync: {_listed(p.number for p in stuck)}",
            f"start the brokers {_listed(missing)}",
        )
    elif thin:
        yield in_sync.warning(
            f"replicas that are not in sync, in partitions {_listed(p.number for p in thin)}",
            f"look at the brokers {_listed(missing)}",
        )
    fewest = min((len(p.replicas) for p in topic.partitions), default=0)
    wanted = min(_WANTED_REPLICAS, brokers)
    replication = Check("kafka.replication", where)
    if fewest < wanted:
        lost = "state" if use.is_state else "records"
        yield replication.warning(
            f"{fewest} of {wanted} replicas: the loss of a broker may lose its {lost}",
            f"give it {wanted} replicas by kafka-reassign-partitions",
        )
    elif not thin:
        yield replication.ok(f"{fewest} replicas, all in sync")


def _settings(where: str, topic: TopicFacts, use: TopicUse) -> Iterator[Finding]:
    fewest = min((len(p.replicas) for p in topic.partitions), default=0)
    least = _number(topic.config, MIN_IN_SYNC) or 1
    min_in_sync = Check("kafka.min-in-sync", where)
    if use.is_state and fewest > 1 and least < 2:  # noqa: PLR2004 - two copies: one may be lost
        yield min_in_sync.warning(
            f"{MIN_IN_SYNC} = {least}: what one broker alone has is acknowledged, and may be lost",
            f"set {MIN_IN_SYNC}=2 on the topic",
        )
    if fewest > 1 and least >= fewest:
        yield min_in_sync.warning(
            f"{MIN_IN_SYNC} = {least} of {fewest} replicas: one broker that is away stops writing",
            f"set {MIN_IN_SYNC}={fewest - 1} on the topic",
        )
    if topic.config.get(UNCLEAN_ELECTION, "false") == "true":
        yield Check("kafka.unclean-election", where).warning(
            f"{UNCLEAN_ELECTION} = true: a replica that lacks records may lead, and they are lost",
            f"set {UNCLEAN_ELECTION}=false on the topic",
        )
    cleanup = {part.strip() for part in topic.config.get("cleanup.policy", "delete").split(",")}
    if use.is_compacted and "compact" not in cleanup:
        yield Check("kafka.cleanup-policy", where).error(
            "its cleanup.policy has no compact: what is older than retention.ms is lost",
            "set cleanup.policy=compact on the topic",
        )
    retention = _number(topic.config, "retention.ms")
    is_short = retention is not None and 0 <= retention < _DAY_MS
    if "READ" in use.rights and not use.is_state and "delete" in cleanup and is_short:
        yield Check("kafka.retention", where).warning(
            f"retention.ms = {retention}: what a job that stands for so long has not read is lost",
            f"set retention.ms={_DAY_MS} or more on the topic",
        )


def _rights(where: str, topic: TopicFacts, use: TopicUse) -> Iterator[Finding]:
    if topic.rights is None:
        return
    missing = use.rights - topic.rights
    acl = Check("kafka.acl", where)
    if missing:
        yield acl.error(
            f"this user lacks the right to {_listed(missing)}",
            f"grant it by kafka-acls --add --topic {use.name} "
            + " ".join(f"--operation {_operation(right)}" for right in sorted(missing)),
        )
    else:
        yield acl.ok(f"this user may {_listed(use.rights)}")


def _operation(right: str) -> str:
    """Return a right as ``kafka-acls`` writes it, such as ``DescribeConfigs``."""
    return "".join(word.title() for word in right.split("_"))


def check_transaction_state(facts: KafkaFacts) -> Iterator[Finding]:
    """Check Kafka's own topic of transactions, where there has been one."""
    topic = facts.topics.get(TRANSACTION_STATE)
    if topic is not None:
        use = TopicUse(TRANSACTION_STATE, "Kafka's own", frozenset(), is_state=True)
        yield from check_topic(facts, use)


def _number(config: Mapping[str, str], key: str) -> int | None:
    try:
        return whole_of(config[key])
    except (KeyError, ValueError):
        return None


def _listed(items: Iterable[int] | Iterable[str]) -> str:
    return ", ".join(str(item) for item in sorted(items))
