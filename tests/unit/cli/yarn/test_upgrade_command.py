"""``homeport upgrade``: what is refused, what would happen, what is shown."""

from __future__ import annotations

import contextlib
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_jobs import KEYS
from statuses import status_of
from stream_in_memory import InMemoryCoordinatorStream
from zipped import zipped as zipped_of

from homeport.appmaster.environment.job_python import JobPython, interpreter
from homeport.appmaster.yarn.hadoop_files import HadoopFiles
from homeport.appmaster.yarn.job_package import (
    digest_of,
    package_name,
    prepared,
    zip_folder,
    zipped,
)
from homeport.cli.job.job_view import JobView
from homeport.cli.yarn import preflight, upgrade_command
from homeport.cli.yarn.upgrade_command import (
    Progress,
    _Asked,
    _checked,
    order_back,
    package_messages,
    plan,
    require_free,
    require_knows,
    require_pending,
    require_upgradable,
    require_way_back,
)
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_package import (
    ENVIRONMENT_NAME,
    PackageContents,
    contents_of,
    with_environment,
)
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)

NEW, OLD = "ab" * 32, "cd" * 32
ORDER = UpgradeOrder("u", "app", NEW, 2_000, by="ann")
STATE = UpgradeState("u", "app", NEW, OLD, 2_000)
DONE = replace(STATE, phase=UpgradePhase.DONE)
S0 = ProcessorId("0-0")
JOB = {"job.name": "j", "job.default.system": "kafka"}


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"task.pipeline.sql": "SELECT 1", "task.pipeline.output": "kafka.o"}, "no code of its"),
        ({"job.systemstreampartition.grouper.factory": "own:Grouper"}, "job's own grouper"),
        ({"task.name.grouper.factory": "own:Grouper"}, "task.name.grouper.factory"),
        ({"cluster-manager.container.retry.count": "0"}, "nothing go back"),
    ],
)
def test_some_jobs_cannot_be_upgraded(values: dict[str, str], what: str) -> None:
    """Each is named, with what to do instead."""
    task = {} if "task.pipeline.sql" in values else {"task.class": "m:C"}
    require_upgradable(Config({**JOB, "task.class": "m:C"}))
    with pytest.raises(ConfigError, match=what):
        require_upgradable(Config({**JOB, **task, **values}))


FORWARD = UpgradeOrders(ORDER)
UNDO = replace(ORDER, direction=UpgradeDirection.BACK, by="")
BOTH = UpgradeOrders(ORDER, UNDO)


@pytest.mark.parametrize(
    ("state", "orders", "what"),
    [
        (STATE, FORWARD, "another upgrade is under way"),
        (None, FORWARD, "another upgrade was ordered"),
        (replace(DONE, id="before"), FORWARD, "another upgrade was ordered"),
        (DONE, BOTH, "the last upgrade is about to be taken back"),
        (DONE, FORWARD, "the job runs this package"),
    ],
)
def test_one_upgrade_at_a_time(
    state: UpgradeState | None, orders: UpgradeOrders, what: str
) -> None:
    """And none to what runs already; an order back is not lost in silence."""
    with pytest.raises(ConfigError, match=what):
        require_free(state, orders, NEW)


def test_another_package_is_free_to_come() -> None:
    """After one that is over, or none, or one that was refused."""
    require_free(None, UpgradeOrders(), NEW)
    require_free(DONE, FORWARD, OLD)
    require_free(replace(DONE, phase=UpgradePhase.GONE_BACK), BOTH, NEW)
    require_free(replace(DONE, id="before", package=OLD), replace(FORWARD, refused="u"), NEW)


def test_the_submissions_package_is_known_too() -> None:
    """While no upgrade has left another one."""
    gone = replace(DONE, phase=UpgradePhase.GONE_BACK, previous=None)
    for state in (None, gone):
        with pytest.raises(ConfigError, match="the job runs this package"):
            require_free(state, UpgradeOrders(), NEW, NEW)
    require_free(DONE, FORWARD, OLD, OLD)


def test_an_upgrade_is_taken_back_once() -> None:
    """Under way, done, or not begun yet."""
    for state in (STATE, DONE, None, replace(DONE, id="before")):
        assert order_back(state, FORWARD) == UNDO
    for phase in (UpgradePhase.BACK, UpgradePhase.GONE_BACK):
        with pytest.raises(ConfigError, match=f"the last upgrade is {phase.value}: it was taken"):
            order_back(replace(DONE, phase=phase), BOTH)
    with pytest.raises(ConfigError, match="there was no upgrade"):
        order_back(None, UpgradeOrders())
    with pytest.raises(ConfigError, match="the order is taken back already"):
        order_back(None, BOTH)
    with pytest.raises(ConfigError, match="is about to be taken back already"):
        order_back(DONE, BOTH)


def test_what_is_under_way_is_taken_back_whatever_was_ordered_since() -> None:
    """The record names it, not the last order, which the driver refuses."""
    other = UpgradeOrders(replace(ORDER, id="other", package=OLD))
    assert order_back(STATE, other) == UNDO
    assert order_back(DONE, replace(other, refused="other")) == UNDO


@pytest.mark.parametrize(
    ("order", "state", "orders", "what"),
    [
        (ORDER, None, replace(FORWARD, refused="u", why="not now"), "nothing was begun: not now"),
        (ORDER, replace(STATE, id="v"), UpgradeOrders(replace(ORDER, id="v")), "to package abab"),
        (ORDER, None, UpgradeOrders(), "the record is of no upgrade"),
        (
            UNDO,
            replace(STATE, id="v"),
            replace(BOTH, forward=replace(ORDER, id="v")),
            "not of the order given here",
        ),
        (UNDO, None, UpgradeOrders(back=UNDO), "the record is of no upgrade"),
    ],
)
def test_an_order_of_which_nothing_comes_ends_its_command(
    order: UpgradeOrder, state: UpgradeState | None, orders: UpgradeOrders, what: str
) -> None:
    """It does not wait for a record that will never be."""
    with pytest.raises(HomeportError, match=what):
        require_pending(order, state, orders)


def test_an_order_that_may_be_taken_is_waited_for() -> None:
    """Forward, and back."""
    require_pending(ORDER, None, FORWARD)
    require_pending(ORDER, replace(DONE, id="before"), FORWARD)
    require_pending(UNDO, None, BOTH)


DATA = zipped_of({"tasks.py": "2"})


def test_what_the_job_may_go_back_to_stays_in_the_stream() -> None:
    """All else goes: the package that runs now is the one from before of this upgrade."""
    stream = InMemoryCoordinatorStream()
    packages = JobPackageManager(stream)
    runs, old = (packages.write(zipped_of({"tasks.py": text})) for text in ("1", "0"))
    before = replace(DONE, id="before", package=runs, previous=old)
    stream.write([UpgradeManager.state_message(before)])
    stream.catch_up()
    order = replace(ORDER, package=package_name(DATA))
    stream.write(package_messages(stream, order, DATA))
    stream.catch_up()
    assert set(packages.names()) == {runs, package_name(DATA)}
    assert packages.read(runs) is not None
    assert UpgradeManager(stream).orders("app").forward == replace(order, by="ann")


def test_without_a_way_back_nothing_is_begun() -> None:
    """What the job runs must be there."""
    stream = InMemoryCoordinatorStream()
    packages = JobPackageManager(stream)
    runs = packages.write(DATA)
    stream.catch_up()
    ran = replace(DONE, package=runs)
    for state in (None, ran, replace(ran, phase=UpgradePhase.GONE_BACK, previous=None)):
        require_way_back(stream, state)
    packages.forget()
    stream.catch_up()
    with pytest.raises(ConfigError, match="which the job runs, is not in the coordinator stream"):
        require_way_back(stream, ran)


def _no_files() -> contextlib.AbstractContextManager[HadoopFiles]:
    raise AssertionError("the cluster's file system is not needed")


FILE = Config(KEYS)


def _asked(
    recorded: dict[str, str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: str | None = None,
) -> list[tuple[Config, JobPython]]:
    """What the classes of the package are checked with, where the stream says ``recorded`` too."""
    asked: list[tuple[Config, JobPython]] = []
    monkeypatch.setattr(
        preflight, "check_classes", lambda config, python, *_, **__: asked.append((config, python))
    )
    folder.mkdir()
    (folder / "m.py").write_text("class C: pass\n")
    stream = InMemoryCoordinatorStream()
    stream.write([wire.set_config(*item) for item in {**FILE, **recorded}.items()])
    stream.catch_up()
    _checked(JobView(FILE, "topic", stream, None), "app", _Asked(str(folder), environment))
    return asked


def _upgradable(folder: Path, monkeypatch: pytest.MonkeyPatch, *left: bytes) -> JobView:
    """A job of code in ``folder``, which ``left`` an upgrade has, if there was one."""
    monkeypatch.setattr(preflight, "check_classes", lambda *_, **__: None)
    monkeypatch.setattr(upgrade_command, "_require_starts", lambda *_: None)
    folder.mkdir()
    (folder / "m.py").write_text("class C: pass\n")
    file = FILE.merged({"yarn.package.path": str(folder)})
    stream = InMemoryCoordinatorStream()
    stream.write([wire.set_config(*item) for item in file.items()])
    for package in left:
        name = JobPackageManager(stream).write(package)
        stream.write([UpgradeManager.state_message(replace(DONE, package=name, previous=None))])
    stream.catch_up()
    return JobView(file, "topic", stream, None)


def _code(folder: Path) -> bytes:
    with prepared(folder, _no_files) as package:
        return zipped(package)


def test_an_environment_comes_with_the_code_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One package names both; it is the same for the same two."""
    view = _upgradable(tmp_path / "p", monkeypatch)
    checked = _checked(view, "app", _Asked(None, sys.executable))
    assert contents_of(checked.data) == PackageContents(
        package_name(_code(tmp_path / "p")), sys.executable
    )
    assert checked == _checked(view, "app", _Asked(str(tmp_path / "p"), sys.executable))
    with pytest.raises(ConfigError, match=r"^--environment = '/none': there is no such file"):
        _checked(view, "app", _Asked(None, "/none"))


def test_an_environment_alone_needs_the_code_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other code would come with it in silence; with --package it is meant."""
    other = zipped_of({"m.py": "class C: ...\n"})
    view = _upgradable(tmp_path / "p", monkeypatch, with_environment(other, "/e"))
    with pytest.raises(ConfigError, match=r"^yarn.package.path = .*and the job runs"):
        _checked(view, "app", _Asked(None, sys.executable))
    assert (
        _checked(view, "app", _Asked(str(tmp_path / "p"), sys.executable)).place == sys.executable
    )


def test_an_environment_stays_where_new_code_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator's file must name it: this machine runs no interpreter of the stream's."""
    other = zipped_of({"m.py": "class C: ...\n"})
    for left, is_named in ((sys.executable, True), ("/e", False)):
        name = "named" if is_named else "other"
        view = _upgradable(tmp_path / name, monkeypatch, with_environment(other, left))
        if is_named:
            assert _checked(view, "app", _Asked(str(tmp_path / name), None)).place == sys.executable
        else:
            with pytest.raises(ConfigError, match=r"^yarn.python.executable = .*environment /e;"):
                _checked(view, "app", _Asked(str(tmp_path / name), None))


def test_what_runs_already_is_no_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code in the same environment; in another one it is one."""
    code = zipped_of({"m.py": "class C: pass\n"})
    view = _upgradable(tmp_path / "p", monkeypatch, with_environment(code, sys.executable))
    archive = tmp_path / "p.zip"
    archive.write_bytes(code)
    for environment in (None, sys.executable):
        with pytest.raises(ConfigError, match="the job runs this package"):
            _checked(view, "app", _Asked(str(archive), environment))
    archive.write_bytes(with_environment(code, "/e"))
    with pytest.raises(ConfigError, match=f"it has a file {ENVIRONMENT_NAME}"):
        _checked(view, "app", _Asked(str(archive), None))


def test_an_environment_without_homeport_is_refused() -> None:
    """Or with one that could not change it again."""
    python = interpreter(sys.executable)
    upgrade_command._require_starts(python, "/e")
    with pytest.raises(ConfigError, match=r"^--environment = '/e': homeport does not start in it"):
        upgrade_command._require_starts(replace(python, here=(sys.executable, "-I", "-S")), "/e")


def test_the_am_of_an_earlier_version_is_refused() -> None:
    """It would restart all containers and change nothing."""
    require_knows(status_of({"job": {"version": "0.2.0"}}), "/e")
    require_knows(status_of({}), None)
    with pytest.raises(ConfigError, match="of a version that cannot change its environment"):
        require_knows(status_of({}), "/e")


def test_an_upgrade_runs_the_interpreter_of_its_operators_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that the stream names, nor an archive, nor a keytab; nor are brokers its."""
    evil = tmp_path / "evil.sh"
    evil.write_text("#!/bin/sh\ntouch ran\n")
    evil.chmod(0o755)
    written = {
        "yarn.python.executable": str(evil),
        "yarn.kerberos.keytab": str(evil),
        "systems.kafka.consumer.bootstrap.servers": "evil:1",
        "systems.kafka.producer.plugin.library.paths": str(evil),
        "task.commit.ms": "5",
    }
    ((config, python),) = _asked(written, tmp_path / "p", monkeypatch)
    assert python.here == (sys.executable,)
    assert config == FILE.merged({"task.commit.ms": "5"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("task.class", "subprocess:Popen"),
        ("task.pipeline.class", "os:system"),
        ("task.spark.conf.spark.driver.extraJavaOptions", "-javaagent:/e.jar"),
        ("stores.s.key.serde", "evil:Serde"),
        ("adstore.manager.factory", "evil:Factory"),
    ],
)
def test_an_upgrade_imports_no_class_that_the_stream_alone_names(
    key: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line names the key, and says what to do where it is meant."""
    with pytest.raises(ConfigError, match="write it into the properties file, if that") as refused:
        _asked({key: value}, tmp_path / "p", monkeypatch)
    assert refused.value.key == key


def test_a_package_is_one_zip(tmp_path: Path) -> None:
    """Equal folders are equal bytes; a zip stays as it is."""
    names = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "m.py").write_text("A = 1\n")
        with prepared(folder, _no_files) as package:
            names.append(package_name(zipped(package)))
    assert names[0] == names[1]
    archive = tmp_path / "p.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("m.py", "A = 1\n")
    with prepared(archive, _no_files) as package:
        assert zipped(package) == archive.read_bytes()


def test_what_run_job_ships_has_the_name_that_an_upgrade_gives_it(tmp_path: Path) -> None:
    """A folder, a zip, and a tar.gz that was unpacked."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "m.py").write_text("A = 1\n")
    shipped = zip_folder(folder, tmp_path / "package.zip")
    name = package_name(shipped.read_bytes())
    tarball = tmp_path / "package.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        archive.add(folder / "m.py", "m.py")
    for place in (folder, shipped, tarball):
        with prepared(place, _no_files) as package:
            assert digest_of(package) == name == package_name(zipped(package))


def _row(processor: str, replica_of: str | None, **facts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    known = {"processor_id": processor, "replica_of": replica_of, "phase": "running"}
    return {**known, "is_temporary": False, **facts}


def test_a_plan_has_the_order_and_the_least_time() -> None:
    """Of those that have not finished; a temporary standby is none."""
    rows = [
        _row("1", None),
        _row("0", None),
        _row("0-0", "0"),
        _row("2", None, phase="finished"),
        _row("1-warm", "1", is_temporary=True),
    ]
    assert plan(ORDER, status_of({"containers": rows})) == [
        "package abababababab: classes checked",
        "order: 0-0, 0, 1",
        "at least 6 s, as each is watched for 2 s",
    ]
    named = plan(ORDER, status_of({"containers": rows}), "/e/bin/python")[0]
    assert named == "package abababababab in environment /e/bin/python: classes checked"


def test_it_is_followed_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Each step once; what it waits for, now and then, where that changes."""
    progress = Progress(1, ORDER)
    assert not progress.is_over(replace(STATE, given=(S0,), current=S0))
    for _ in range(8):
        progress.waits(lambda: "a reason")
    progress.waits(lambda: "not looked at")
    assert progress.is_over(replace(DONE, given=(S0,)))
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "upgrade to package abababababab from cdcdcdcdcdcd",
        "0-0: gets the package (1 of 1)",
        "0-0: runs the package",
    ]
    assert printed.err.splitlines() == ["waits: a reason"]


def test_one_that_is_taken_back_is_not_over_while_its_record_says_done() -> None:
    """The driver has not read the order yet."""
    progress = Progress(1, replace(ORDER, direction=UpgradeDirection.BACK))
    assert not progress.is_over(DONE)
    assert progress.is_over(replace(DONE, phase=UpgradePhase.GONE_BACK))
