"""Which keys an operator sets by HTTP: what takes effect live and names nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.driver.actions.operator_actions import DriverActions
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.driver.driver import Driver
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import BoolKey, IntKey, Key, Liveness, Reach, TextKey
from homeport.config.errors import ConfigError, WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.http.callers import Caller, Role
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE, ConfigManager
from homeport.job_coordinator.metadata.epochs import Rank

ADA = Caller("ada", Role.OPERATE, "10.0.0.9")
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required username=u password=s3;"
FILE = Config(
    {
        "job.name": "j",
        "task.class": "m:T",
        "task.inputs": "kafka.in",
        "systems.kafka.samza.factory": "kafka",
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "good:9093",
        "systems.kafka.consumer.security.protocol": "SASL_SSL",
        "systems.kafka.consumer.sasl.mechanism": "SCRAM-SHA-512",
        "systems.kafka.consumer.sasl.jaas.config": JAAS,
        "yarn.package.path": "/x",
        "cluster-manager.jobcoordinator.tokens.operate": "ada:" + "1" * 64,
    }
)
BY_HAND = "systems.kafka.producer.security.protocol"
"""A key that the writer tool has set."""
CHANGES: list[tuple[str, str | None]] = [
    ("cluster-manager.jobcoordinator.tokens.operate", "mallory:" + "0" * 64),
    ("cluster-manager.jobcoordinator.tokens.read", "mallory:" + "0" * 64),
    ("cluster-manager.jobcoordinator.tokens.operate", None),
    ("cluster-manager.jobcoordinator.access.generation", "9"),
    ("cluster-manager.jobcoordinator.read.open", "true"),
    ("cluster-manager.jobcoordinator.url.names", "evil"),
    ("cluster-manager.drained.hosts", "nm1,nm2"),
    ("systems.kafka.consumer.security.protocol", "SASL_PLAINTEXT"),
    ("systems.kafka.consumer.sasl.mechanism", "PLAIN"),
    ("systems.kafka.consumer.bootstrap.servers", "evil:9092"),
    ("systems.kafka.producer.plugin.library.paths", "/tmp/evil.so"),  # noqa: S108 - never opened
    ("systems.other.samza.factory", "kafka"),
    (BY_HAND, None),
    ("yarn.python.executable", "/tmp/evil.sh"),  # noqa: S108 - never run
    ("yarn.python.archive", "http://evil/e.tar.gz"),
    ("yarn.package.path", "http://evil/p.zip"),
    ("yarn.kerberos.keytab", "/etc/krb5.keytab"),
    ("yarn.am.container.label", "x"),
    ("yarn.am.tracking.url", "http://evil:80/"),
    ("yarn.am.certificate", "x"),
    ("task.spark.conf.spark.driver.extraJavaOptions", "-javaagent:/tmp/evil.jar"),
    ("task.spark.conf.spark.plugins", "evil.Plugin"),
    ("task.spark.conf.spark.jars", "http://evil/x.jar"),
    ("task.class", "subprocess:Popen"),
    ("task.class", None),
    ("task.pipeline.class", "os:system"),
    ("task.pipeline.sql", "SELECT reflect('java.lang.Runtime', 'getRuntime')"),
    ("task.traces.otlp.endpoint", "http://evil:4318"),
    ("task.dead.letter.stream", "kafka.elsewhere"),
    ("task.exactly.once", "false"),
    ("stores.s.changelog", "kafka.other"),
    ("stores.s.rocksdb.block.size.bytes", "1"),
    ("serializers.registry.x.class", "evil:Serde"),
    ("metrics.reporter.x.class", "evil:Reporter"),
    ("app.run.id", "another"),
    ("job.name", "z"),
    ("job.name", None),
    ("job.logged.store.base.dir", "/"),
    # of the job's own code, and of no program
    ("my.key", "1"),
    ("my.key", None),
    ("task.comit.ms", "5"),
    ("sensitive.x", "5"),
    # not quite a key that may be set
    ("Task.Commit.Ms", "5"),
    ("TASK.COMMIT.MS", "5"),
    ("task.commit", "5"),
    ("task.commit.ms.", "5"),
    (".task.commit.ms", "5"),
    ("task..commit.ms", "5"),
    ("task commit ms", "5"),
    ("task.commit.ms=5 job.name", "5"),
    ("task.*", "5"),
    ("task.", "5"),
    ("task", None),
    ("systems.kafka.", None),
    ("systems.<system>.consumer.<property>", "x"),
    ("org.apache.samza.task.class", "x"),
    ("task.commit.ms\u200b", "5"),
    ("t\u0430sk.commit.ms", "5"),
]


class Page:
    """The actions of a driver, asked as the server asks: planned, then carried out."""

    def __init__(self) -> None:
        self.stream = InMemoryCoordinatorStream("job")
        self.stream.write([wire.set_config(key, value) for key, value in FILE.items()])
        by_hand = {BY_HAND: "SASL_SSL", "my.key": "0", "task.commit.ms": "7000"}
        by_hand |= {"task.class": "m:T", "job.name": "j"}
        self.stream.write(
            wire.set_config(key, value)._replace(source=WRITER_SOURCE)
            for key, value in by_hand.items()
        )
        self.client = CoordinatorStreamClient(self.stream, Rank(1, "application_1_0001", 1))
        model = SimpleNamespace(config=FILE, containers={})
        driver = SimpleNamespace(
            view=SimpleNamespace(stream=self.client),
            audit=SimpleNamespace(by_http=lambda records: records),
            live=SimpleNamespace(job_models=SimpleNamespace(model=model)),
        )
        self.actions = DriverActions(cast("Driver", driver), FILE, lambda _: None)

    def config(self) -> Config:
        """What the stream says."""
        self.stream.catch_up()
        return ConfigManager(self.stream).read()

    async def plan(self, **asked: object) -> None:
        """What is shown before anything is done."""
        await self.client.read()
        await self.actions.plan("config", asked)

    async def carry_out(self, **asked: object) -> None:
        """Without a look at the plan."""
        await self.actions.carry_out("config", asked, ADA)

    async def set(self, **asked: object) -> None:
        """Planned, and then carried out."""
        await self.plan(**asked)
        await self.carry_out(**asked)


@pytest.fixture
def page() -> Iterator[Page]:
    """Of a job whose configuration a tool has changed by hand."""
    page = Page()
    with closing(page.client):
        yield page


@pytest.mark.parametrize(("key", "value"), CHANGES)
@pytest.mark.parametrize("force", [False, True])
async def test_what_names_something_is_set_by_the_tool_alone(
    page: Page, key: str, value: str | None, *, force: bool
) -> None:
    """In one line; nothing is written."""
    before = page.config()
    asked: dict[str, Any] = {"key": key, "force": force}
    asked |= {} if value is None else {"value": value}
    with pytest.raises((ConfigError, WireError)):
        await page.plan(**asked)
    with pytest.raises((ConfigError, WireError)) as refused:
        await page.carry_out(**asked)
    assert page.config() == before
    message = str(refused.value)
    assert "\n" not in message
    assert "evil" not in message
    if key.isprintable():
        assert key in message
        assert "a number, a switch or a choice that the running job takes live" in message
        assert "homeport" in message or "write task.commit.ms" in message


def _example(key: Key) -> str:
    return str(next(iter(getattr(key, "choices", ())), None) or key.default_text or "1")


@pytest.mark.parametrize("key", [k for k in keys.ALL if "<" not in k.name], ids=lambda k: k.name)
async def test_every_declared_key_follows_the_rule(page: Page, key: Key) -> None:
    """A new key of free text is refused without anybody's doing."""
    is_live = key.liveness in {Liveness.LIVE, Liveness.RETUNES_CONTAINERS}
    is_plain = isinstance(key, IntKey | BoolKey) or (isinstance(key, TextKey) and key.choices != ())
    assert key.is_operators is (is_live and is_plain and key.reach is Reach.NOTHING)
    for name in (key.name, *key.legacy):
        message = ""
        try:
            await page.set(key=name, value=_example(key))
        except ConfigError as error:
            message = str(error)
        assert ("that the running job takes live" in message) is not key.is_operators


def test_no_key_with_parts_is_an_operators() -> None:
    """Any text may stand for a part, so that a pattern has room for keys of another meaning."""
    assert [key.name for key in keys.ALL if key.is_operators and "<" in key.name] == []


async def test_a_key_that_may_be_set_is_set_and_taken_back(page: Page) -> None:
    """White space around it is not part of it."""
    await page.set(key=" task.commit.ms\n", value="5000")
    assert page.config()["task.commit.ms"] == "5000"
    await page.set(key="task.commit.ms")
    assert "task.commit.ms" not in page.config()


@pytest.mark.parametrize("value", ["\x1b[2J", "5\n", "true\x07", "x"])
async def test_a_value_is_one_printable_line(page: Page, value: str) -> None:
    """It is printed on administrators' terminals."""
    before = page.config()
    with pytest.raises((ConfigError, WireError)):
        await page.set(key="task.commit.ms", value=value)
    assert page.config() == before
