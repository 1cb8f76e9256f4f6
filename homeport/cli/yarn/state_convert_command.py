"""``homeport state convert``: rewrites a store's values in another schema."""

import os
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

import typer

from homeport.appmaster.yarn.hadoop_files import hadoop_files
from homeport.appmaster.yarn.job_package import package_path, prepared
from homeport.appmaster.yarn.kerberos import kerberos_login
from homeport.cli.host import state_commands
from homeport.cli.host.state_convert import (
    FROM,
    WITH,
    Function,
    Rewriting,
    ShownConversion,
    StoreChange,
    Writer,
    admit,
    convert,
)
from homeport.cli.options import AsJson, Named, Progress, described, note, print_item
from homeport.cli.yarn import submission_claim
from homeport.cli.yarn.job import StoppedJob, open_stopped
from homeport.cli.yarn.state_reset import taking_over
from homeport.cli.yarn.waiting import Waiter
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError, StoreError
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig, YarnConfig
from homeport.config.settings.serde_names import serde_name
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.system_stream import SystemStream
from homeport.container.kafka.log_reader import KafkaChangelogReader, LogReader, log_readers
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.progress.topic_rules import BATCH_BYTES, TopicRules
from homeport.container.progress.transaction_plan import Changes, StoreId
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.record_limit import producer_limit
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_conversion import ConversionManager
from homeport.job_coordinator.metadata.state_facts import StateFactManager
from homeport.job_coordinator.metadata.state_reset import StateResetManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.incarnation import conversion_transactional_id

_CLAIM_LIMIT_S = 30.0
_PROGRESS_S = 2.0

app = state_commands.app


@app.command("convert", short_help="rewrite a store's values in another schema, by a function")
@described(
    store=typer.Argument(metavar="STORE", help="The store's name."),
    function=typer.Option(
        WITH,
        metavar="MODULE:FUNCTION",
        help="Of the job's code: takes a value as the former schema reads it, and returns the one "
        "for the new schema. Without it nothing is rewritten: a schema that "
        "reads all values is admitted, though the code that ran last does not read its own.",
    ),
    former=typer.Option(
        FROM,
        metavar="SERDE",
        help="The former serde of the values, of serializers.registry: for those that cannot be "
        "read by what the job has recorded, such as Protobuf's.",
    ),
    none_deletes="Where the function returns None the key goes; without this that is an error.",
    dry_run="Convert all values without writing them, and count.",
)
def convert_command(
    *,
    store: str,
    named: Named,
    function: str | None = None,
    former: str | None = None,
    none_deletes: bool = False,
    dry_run: bool = False,
    as_json: AsJson = False,
) -> None:
    """Rewrites all values of STORE for the schema that the job's file has now.

    For a change of schema that run-job refuses. The job does not run, and its file is the new one.
    First each value is converted without being written, so that an error changes nothing. Then the
    values go to the changelog, and nothing starts the job meanwhile; the next start restores the
    store from there. A conversion that was cut off is finished by the same command, and converts
    no value twice. Keys stay as they are. It runs in this interpreter, with the code of
    yarn.package.path, or that of PYTHONPATH.
    """
    with open_stopped(named.config()) as (stream, job):
        job.require_at_rest()
        config = job.config.merged(ConfigManager(stream).written())
        with _own_code(config):
            change = _change_of(config, stream, store, former)
            if not (change.is_needed() or ConversionManager(stream).is_under_way()):
                _print(change.outcome(), as_json=as_json)
                return
            if function is None:
                _print(admit(change, stream, dry_run=dry_run), as_json=as_json)
                return
            made = Function(function, change, none_deletes=none_deletes)
            system = SystemConfig.of(config, change.changelog.system)
            with log_readers({system.name: system}, time.sleep) as readers:
                site = KafkaSite(job, stream, config, change.changelog, readers[system.name])
                progress = Progress(_PROGRESS_S, report=note)
                reader = KafkaChangelogReader(readers)
                rewriting = Rewriting(made, change.changelog, {}, reader, progress.show)
                _print(convert(change, stream, site, rewriting, dry_run=dry_run), as_json=as_json)


def _print(done: ShownConversion, *, as_json: bool) -> None:
    print_item(done, as_json=as_json)
    if not done.is_done:
        note("nothing was written")


@contextmanager
def _own_code(config: Config) -> Iterator[None]:
    """Let the job's own code be imported from its package, for a block; else from PYTHONPATH."""
    place = package_path(YarnConfig.of(config).package_path, may_be_none=True)
    if place is None:
        yield
        return
    with prepared(place, partial(hadoop_files, os.environ, kerberos_login(config))) as package:
        sys.path.insert(0, str(package.import_path))
        try:
            yield
        finally:
            sys.path.remove(str(package.import_path))


def _change_of(
    config: Config, stream: CoordinatorStream, name: str, former: str | None
) -> StoreChange:
    """Return what becomes of the store; ConfigError: it has no values in a changelog."""
    stores = StorageConfig.of(config).stores
    logged = {n: s for n, s in stores.items() if s.changelog is not None}
    store = logged.get(name)
    if store is None or store.changelog is None:
        rule = f"the job's stores with a changelog are: {', '.join(logged) or 'none'}"
        raise ConfigError("STORE", name, rule, "name one of these")
    recorded = StateFactManager(stream).schemas().get(str(store.changelog))
    if recorded is None:
        rule = f"no container has written down what is in {store.changelog}"
        raise ConfigError("STORE", name, rule, "run the job: there is nothing to convert")
    entry = None if former is None else serde_name(config, FROM, former)
    return StoreChange(store, store.changelog, recorded, entry)


@dataclass(frozen=True)
class KafkaSite:
    """A job that does not run, and the changelog of one of its stores. ``config``: the new one."""

    job: StoppedJob
    stream: CoordinatorStreamStore
    config: Config
    changelog: SystemStream
    reader: LogReader

    def ends(self) -> dict[int, int]:
        """Return {partition of the changelog: its end now}."""
        name = self.changelog.stream
        admin = TopicAdmin(SystemConfig.of(self.config, self.changelog.system))
        count = admin.partition_counts([name]).get(name, 0)
        if not count:
            raise StoreError(f"the changelog {self.changelog} is gone: nothing can be converted")
        found = self.reader.ends([(name, partition) for partition in range(count)])
        return {partition: ends.head for (_, partition), ends in found.items()}

    def rules(self) -> TopicRules:
        """Return the limits of a record of the changelog."""
        admin = TopicAdmin(SystemConfig.of(self.config, self.changelog.system))
        found = admin.topic_config(self.changelog.stream)
        return TopicRules.of(found, producer_limit(self._writes_by()), BATCH_BYTES)

    @contextmanager
    def owned(self) -> Iterator[tuple[CoordinatorStream, Writer]]:
        """Take the job over as a reset does, and fence an earlier conversion."""
        claim = submission_claim.take_number(
            self.stream,
            uuid.uuid4().hex,
            lambda: Waiter(_CLAIM_LIMIT_S).polls_logging("a run-job is submitting this job"),
            self.job.require_at_rest,
            partial(submission_claim.fence_command, self.job.config),
        )
        try:
            former, begun = StateResetManager(self.stream).read(), ConversionManager(self.stream)
            with taking_over(self.job.config, claim, begun.begun()) as (own, _):
                try:
                    self.job.require_at_rest()
                except HomeportError:
                    StateResetManager(own).restore(former)
                    raise
                self.job.fence_standalone()
                own.catch_up()
                with closing(self._producer()) as producer:
                    producer.initialise()
                    yield own, _Appending(producer, self.changelog)
        finally:  # a claim that stays holds the next command up
            submission_claim.withdraw(self.stream, claim)

    def _producer(self) -> TransactionalProducer:
        section = JobConfig.of(self.config)
        name = conversion_transactional_id(section.name, section.id)
        return TransactionalProducer(self._writes_by(), name)

    def _writes_by(self) -> SystemConfig:
        return SystemConfig.of(self.config, TaskConfig.of(self.config).checkpoint_system)


@dataclass(frozen=True)
class _Appending:
    """Appends values to the changelog, a transaction each time."""

    producer: TransactionalProducer
    changelog: SystemStream

    def write(self, partition: int, entries: Mapping[bytes, bytes | None]) -> None:
        """Append all of ``entries`` to the partition, or nothing; None deletes."""
        self.producer.begin()
        at = StoreId(str(self.changelog), TaskName(f"partition {partition}"))
        self.producer.send_changes(Changes(at, self.changelog, partition, entries))
        self.producer.deliver()
        self.producer.commit()
