"""``homeport upgrade``: the running job gets new code, or a new Python environment with homeport.

One container after the other has it. Code and environment are one package; package and order are
records of the coordinator stream: what follows goes on when this command, or the AM, dies.
Everything that can be refused is refused before anything is written.
"""

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import typer

from homeport.appmaster.environment.job_python import JobPython, job_python, published
from homeport.appmaster.upgrade.messages import end, in_brief, steps
from homeport.appmaster.upgrade.observed import ContainerSeen, in_order
from homeport.appmaster.yarn.hadoop_files import hadoop_files
from homeport.appmaster.yarn.job_package import package_name, package_path, prepared, zipped
from homeport.appmaster.yarn.kerberos import kerberos_login
from homeport.cli.job.job_view import JobView, open_job, stream_place
from homeport.cli.job.placement_request import NoWait, Patience, write_order
from homeport.cli.options import Given, described, new_app, note
from homeport.cli.yarn import preflight
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.operators_file import require_own_code, with_own_places
from homeport.config.errors import ConfigError, HomeportError, UnavailableError, WireError
from homeport.config.java_names import is_user_class
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.config.settings.sections import ClusterManagerConfig, YarnConfig
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.kafka.record_limit import record_limit
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.state_facts import StateFactManager
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.job_package import (
    ENVIRONMENT_NAME,
    PackageContents,
    contents_of,
    require_readable,
    with_environment,
)
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)
from homeport.job_coordinator.python_environment import is_archive, is_same, require_starts
from homeport.job_coordinator.status.host_drain import left_on_drained_hosts
from homeport.job_coordinator.status.shape import Phase, ShownStatus

app = new_app()

_EPILOG = """\
\b
Examples:
  homeport upgrade --package build/new --config-path=my.properties
  homeport upgrade --package build/new.zip --dry-run --config-path=my.properties
  homeport upgrade --environment /opt/homeport-2/bin/python --config-path=my.properties
  homeport upgrade --undo --config-path=my.properties
"""
_WHAT = "name a package, an environment or both, or --undo"
_OPTION, _ENVIRONMENT = "--package", "--environment"
_STARTS = "homeport.container.launcher.launcher, homeport.appmaster.programs.application_master"
"""What hosts start in an environment."""
_LONGEST_MS = 86_400_000
_REMEDY = "start it with run-job, whose yarn.package.path names the new code, or try again"
_ROLLING = (
    "has no meaning for a standalone job, whose processors read their own code",
    "restart its processors one after the other: docs/standalone.md, rolling restart",
)


@app.command(epilog=_EPILOG)
@described(
    watch_ms=typer.Option(
        min=1,
        max=_LONGEST_MS,
        help="How long each container is watched before the next one gets the code.",
    ),
    package="Folder, zip or tar.gz with the new code, or its URL, as of hdfs:.",
    environment="Interpreter that each host has, or archive of homeport pack, or its URL.",
    undo="All go back to the code and environment from before the last upgrade.",
    dry_run="Check, show the order; change nothing.",
)
def upgrade(
    *,
    given: Given,
    package: str | None = None,
    environment: str | None = None,
    watch_ms: int = 60_000,
    undo: bool = False,
    dry_run: bool = False,
    no_wait: NoWait = False,
) -> None:
    """Gives the running job new code or a new environment; a failure takes it back by itself.

    One container after the other gets it, standbys before their active container. Each is restarted
    on its host once its launcher has it ready, and watched; one failure of it, or a lag that stays,
    and all go back. The AM follows when all containers run in a new environment. Ends with exit
    code 0 when all run what is new, with 1 when they went back or nothing was begun, with 3 when
    Kafka or the AM has not answered for minutes: the upgrade goes on without it.
    """
    if undo is not (package is environment is None):
        raise ConfigError(_OPTION, package, _WHAT, "give one of these")
    with open_job(given) as job:
        job.require_on_yarn("upgrade", _ROLLING)
        running = job.require_running(_REMEDY)
        status, application = running.client.status(), running.application
        for line in left_on_drained_hosts(status):
            note(line)
        require_knows(status, environment)
        asked = _Asked(package, environment, watch_ms, may_upload=not dry_run)
        place, order, messages = _ordered(job, application, None if undo else asked)
        back = [f"takes back the upgrade to package {in_brief(order.package)}"]
        lines = back if undo else plan(order, status, place)
        if dry_run:
            print("\n".join(lines))
            return
        # The check of the classes has taken its time.
        job.stream.catch_up()
        if not undo:
            _require_still_free(job.stream, order)
        write_order(job.stream, messages)
        note(f"asked of {running}: {lines[0]}")
        if no_wait:
            print(order.id)
            return
        ended = _followed(job, order, status)
    if ended.phase is UpgradePhase.GONE_BACK and not undo:
        raise HomeportError(end(ended))
    print(end(ended))
    _remind(place)


# ----------------------------------------------------------------------------- what is refused


def _remind(place: str | None) -> None:
    if place is not None:
        note(f"{_key(place)} must name {place} for the next deployment")


def require_knows(status: ShownStatus, environment: str | None) -> None:
    """Require that the running AM knows environments, if one is given: that of 0.1 does not."""
    if environment is not None and status.job.version is None:
        raise ConfigError(
            _ENVIRONMENT,
            environment,
            "the job's AM is of a version that cannot change its environment",
            "end the job (run-job --operation=kill) and run-job it with the new one: it keeps its "
            "state",
        )


def require_upgradable(config: Config, *, is_other_code: bool = True) -> None:
    """Require that a job of this configuration can get other code while it runs.

    ``is_other_code``: False: only its environment changes. ConfigError: it has none of its own; its
    AM runs some of it; or a single failure would end a container.
    """
    if is_other_code:
        _require_code(config)
    retries = ClusterManagerConfig.of(config).retry_count
    if retries == 0:
        rule = "the first failure of the new code would give its container up, and nothing go back"
        remedy = "set it to 1 or more; the running job takes it at once"
        raise keys.CONTAINER_RETRY_COUNT.error("0", rule, remedy)


def _require_code(config: Config) -> None:
    pipeline = PipelineConfig.of(config)
    if pipeline is not None and not pipeline.needs_package:
        rule = "the job has no code of its own that could be upgraded"
        remedy = "deploy the new pipeline with run-job"
        raise ConfigError(pipeline.key, pipeline.value, rule, remedy)
    for key in (keys.JOB_SSP_GROUPER_FACTORY, keys.TASK_NAME_GROUPER_FACTORY):
        if is_user_class(key.read(config) or ""):
            rule = "the AM runs the job's own grouper, and its code is that of the deployment"
            raise key.error(key.read(config), rule, "deploy the new package with run-job")


def require_free(
    state: UpgradeState | None,
    orders: UpgradeOrders,
    package: str | None = None,
    submitted: str | None = None,
) -> None:
    """Require that no upgrade is under way or ordered, and that the package is not what runs.

    ``submitted``: the package of the submission; None: not known.
    """
    rule = None
    if state is not None and not state.phase.is_final:
        rule = "another upgrade is under way"
    elif orders.is_new(state):
        rule = "another upgrade was ordered"
    elif orders.takes_back(state):
        rule = "the last upgrade is about to be taken back"
    if rule is not None:
        raise ConfigError(_OPTION, package, rule, "wait for it, or take it back by --undo")
    runs = submitted if state is None or state.left is None else state.left
    if package is not None and runs == package:
        raise ConfigError(_OPTION, package, "the job runs this package", "name another one")


def _require_still_free(stream: CoordinatorStream, order: UpgradeOrder) -> None:
    upgrades = UpgradeManager(stream)
    state, orders = upgrades.state(order.application), upgrades.orders(order.application)
    require_free(state, orders, order.package)


def order_back(state: UpgradeState | None, orders: UpgradeOrders) -> UpgradeOrder:
    """Return the order to take back the upgrade under way, else the ordered, else the last one.

    ConfigError: there is none, or it goes back, or has gone back, or was taken back.
    """
    is_free = state is None or state.phase.is_final
    if is_free and orders.forward is not None and orders.is_new(state):
        if orders.cancels(state):
            raise ConfigError("--undo", "", "the order is taken back already", "wait for its end")
        return replace(orders.forward, direction=UpgradeDirection.BACK, by="")
    if state is None:
        rule = "there was no upgrade in this run of the job"
        raise ConfigError("--undo", "", rule, "give --package")
    if state.phase not in {UpgradePhase.FORWARD, UpgradePhase.DONE}:
        rule = f"the last upgrade is {state.phase.value}: it was taken back, or went back by itself"
        raise ConfigError("--undo", "", rule, "give --package")
    if orders.takes_back(state):
        rule = "the last upgrade is about to be taken back already"
        raise ConfigError("--undo", "", rule, "homeport status shows how far it is")
    back = UpgradeDirection.BACK
    return UpgradeOrder(state.id, state.application, state.package, state.watch_ms, back)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parts of the job that change.

    ``package``: None: the code stays. ``environment``: None: that stays. ``may_upload``: whether
    an archive may go to the cluster's file system; else its name here stands for it.
    """

    package: str | None
    environment: str | None
    watch_ms: int = 60_000
    may_upload: bool = True


@dataclass(frozen=True, slots=True)
class _Checked:
    """A package that may be ordered: its zip, and the environment that it names; None: none."""

    data: bytes
    place: str | None


def _checked(job: JobView, application: str, asked: _Asked) -> _Checked:
    """Return the package, whose classes can be used in its environment."""
    named, environment = asked.package, asked.environment
    # This machine runs the interpreter and imports the classes of its operator's file alone.
    config = with_own_places(job.recorded_config(), job.given)
    require_own_code(config, job.given)
    require_upgradable(config, is_other_code=named is not None)
    upgrades = UpgradeManager(job.stream)
    state, orders = upgrades.state(application), upgrades.orders(application)
    require_free(state, orders)
    require_way_back(job.stream, state)
    running = _running(job.stream, state, upgrades.submitted(application))
    files = partial(hadoop_files, os.environ, kerberos_login(config))
    try:
        python = job_python(with_python(config, environment), os.environ, files, note)
        if environment is not None:
            _require_starts(python, environment)
        else:
            require_same_python(python, running.place)
        code = YarnConfig.of(job.given).package_path if named is None else named
        with prepared(package_path(code, may_be_none=named is None), files) as package:
            data = zipped(package)
            require_readable(data)
            if contents_of(data).place is not None:
                raise WireError(f"it has a file {ENVIRONMENT_NAME}")
            if named is None:
                require_same_code(code, package_name(data), running.code)
            if environment is None or is_same(running.place or "", python.value):
                require_free(None, UpgradeOrders(), package_name(data), running.code)
            schemas = StateFactManager(job.stream).schemas()
            imports = package.import_path
            preflight.check_classes(config, python, imports, note, schemas, has_way_back=True)
    except WireError as error:
        rule = f"{error}"
        remedy = "pack the code alone; libraries are for yarn.python.archive (homeport pack)"
        raise ConfigError(_OPTION, named, rule, remedy) from None
    except ConfigError as error:
        option = _given(named, environment).get(error.key)
        if option is None:
            raise
        raise ConfigError(*option, error.rule, error.remedy) from None
    if environment is None and running.place is None:
        return _Checked(data, None)
    if asked.may_upload:
        python = published(python, files, note)
    place = python.node.archive or python.value
    return _Checked(with_environment(data, place), place)


def _running(
    stream: CoordinatorStream, state: UpgradeState | None, submitted: str | None
) -> PackageContents:
    """Return what the job runs; the code is empty where that is not known.

    ``submitted``: the package of the submission.
    """
    left = submitted if state is None or state.left is None else state.left
    return PackageContents("") if left is None else JobPackageManager(stream).contents(left)


def _given(named: str | None, environment: str | None) -> dict[str, tuple[str, str]]:
    """Return {key: the option that stands for it here, and its value}."""
    pythons = (keys.YARN_PYTHON_EXECUTABLE.name, keys.YARN_PYTHON_ARCHIVE.name)
    options = {} if named is None else {keys.YARN_PACKAGE_PATH.name: (_OPTION, named)}
    if environment is not None:
        options |= dict.fromkeys(pythons, (_ENVIRONMENT, environment))
    return options


def with_python(config: Config, environment: str | None) -> Config:
    """Return the configuration with that environment; None: its own."""
    if environment is None:
        return config
    other = {keys.YARN_PYTHON_EXECUTABLE.name, keys.YARN_PYTHON_ARCHIVE.name}
    kept = {key: value for key, value in config.items() if key not in other}
    return Config({**kept, _key(environment): environment})


def _key(environment: str) -> str:
    key = keys.YARN_PYTHON_ARCHIVE if is_archive(environment) else keys.YARN_PYTHON_EXECUTABLE
    return key.name


def _require_starts(python: JobPython, environment: str) -> None:
    try:
        require_starts(python.here, environment, _STARTS)
    except HomeportError as error:
        rule = f"homeport does not start in it ({error})"
        remedy = "name an environment that has homeport of this version or a later one"
        raise ConfigError(_ENVIRONMENT, environment, rule, remedy) from None


def require_same_python(python: JobPython, place: str | None) -> None:
    """Require that the operator's file names the environment that the last upgrade has left.

    ``place``: None: that of the submission, which is not known.
    """
    if place is not None and not is_same(place, python.value):
        rule = f"the last upgrade has left the job in environment {place}"
        raise ConfigError(python.key, python.value, rule, f"let {_key(place)} name that one")


def require_same_code(path: str | None, code: str, runs: str) -> None:
    """Require that the code at ``path`` is what the job runs, by their sha256; empty: not known."""
    if runs not in {"", code}:
        rule = f"it is package {in_brief(code)}, and the job runs {in_brief(runs)}"
        remedy = "let it name the code that the job runs, or give the new code by --package, too"
        raise keys.YARN_PACKAGE_PATH.error(path, rule, remedy)


def require_way_back(stream: CoordinatorStream, state: UpgradeState | None) -> None:
    """Require that the code that the job runs now can be had again."""
    left = None if state is None else state.left
    if left is not None and JobPackageManager(stream).read(left) is None:
        raise ConfigError(
            _OPTION,
            None,
            f"package {in_brief(left)}, which the job runs, is not in the coordinator stream: "
            "there would be no way back",
            "deploy with run-job, whose yarn.package.path names the new code",
        )


# ----------------------------------------------------------------------------- what is written


def _ordered(
    job: JobView, application: str, asked: _Asked | None
) -> tuple[str | None, UpgradeOrder, list[CoordinatorStreamMessage]]:
    """Return environment, order and records of an upgrade; ``asked``: None: of the way back."""
    if asked is None:
        upgrades = UpgradeManager(job.stream)
        order = order_back(upgrades.state(application), upgrades.orders(application))
        return None, order, [UpgradeManager.order_message(order)]
    checked = _checked(job, application, asked)
    name = package_name(checked.data)
    order = UpgradeOrder(str(uuid.uuid4()), application, name, asked.watch_ms)
    system, named = stream_place(job.given)
    limit = record_limit(system, named.coordinator_topic)
    return checked.place, order, package_messages(job.stream, order, checked.data, limit)


def package_messages(
    stream: CoordinatorStream, order: UpgradeOrder, data: bytes, limit: int | None = None
) -> list[CoordinatorStreamMessage]:
    """Return the records of package and order, and tombstones of packages without a way back.

    ``limit``: bytes of the largest record that the topic takes; None: the default.
    """
    packages = JobPackageManager(stream)
    state = UpgradeManager(stream).state(order.application)
    left = None if state is None else state.left
    keep = {order.package, left} - {None}
    return [
        *packages.messages(data, limit),
        UpgradeManager.order_message(order),
        *packages.messages_to_forget([name for name in keep if name is not None]),
    ]


# ----------------------------------------------------------------------------- what is shown


def plan(order: UpgradeOrder, status: ShownStatus, place: str | None = None) -> list[str]:
    """Return the order of the processors, and how long the upgrade takes at least.

    ``place``: the environment that the package names; None: none.
    """
    named = "" if place is None else f" in environment {place}"
    names = [c.processor_id for c in in_order(containers(status))]
    least_s = len(names) * order.watch_ms / 1000
    return [
        f"package {in_brief(order.package)}{named}: classes checked",
        f"order: {', '.join(names)}",
        f"at least {least_s:g} s, as each is watched for {order.watch_ms / 1000:g} s",
    ]


def containers(status: ShownStatus) -> list[ContainerSeen]:
    """Return those of the status that an upgrade is about."""
    return [
        ContainerSeen(c.processor_id, c.replica_of)
        for c in status.containers
        if c.phase is not Phase.FINISHED and not c.is_temporary
    ]


def _followed(job: JobView, order: UpgradeOrder, status: ShownStatus) -> UpgradeState:
    """Print each step; return the record of the end; UnansweredError where that is not known."""
    wait = Patience(job)
    show = Progress(len(containers(status)), order)
    upgrades = UpgradeManager(job.stream)
    while True:
        wait()
        state = upgrades.state(order.application)
        if state is not None and state.id == order.id:
            if show.is_over(state):
                return state
        else:
            require_pending(order, state, upgrades.orders(order.application))
        show.waits(lambda: _waits(job))


def require_pending(order: UpgradeOrder, state: UpgradeState | None, orders: UpgradeOrders) -> None:
    """Require that the driver may yet take the order, which has no record so far."""
    if orders.refused == order.id:
        raise HomeportError(f"nothing was begun: {orders.why}")
    is_back = order.direction is UpgradeDirection.BACK
    known = orders.back if is_back else orders.forward
    is_last = known is not None and known.id == order.id
    # No driver takes an order back whose upgrade is neither in the record nor ordered.
    if not is_last or (is_back and not orders.cancels(state)):
        now = "no upgrade" if state is None else f"the upgrade to package {in_brief(state.package)}"
        raise HomeportError(
            f"the record is of {now}, not of the order given here: see homeport status"
        )


def _waits(job: JobView) -> str:
    """Return what the upgrade waits for, by the AM; empty where that does not answer."""
    try:
        rollout = None if job.running is None else job.running.client.status().upgrade
    except (UnavailableError, WireError):
        return ""
    return "" if rollout is None else rollout.waits


class Progress:
    """What was printed of an upgrade so far."""

    _EVERY = 4

    def __init__(self, count: int, order: UpgradeOrder) -> None:
        self._count = count
        self._is_back = order.direction is UpgradeDirection.BACK
        self._last: UpgradeState | None = None
        self._shown = ""
        self._looks = 0

    def is_over(self, state: UpgradeState) -> bool:
        """Print what is new; return whether there will be no more."""
        for line in steps(self._last, state, self._count):
            print(line, flush=True)
        self._last = state
        # The record of an upgrade that is taken back after its end is as before for a while.
        is_taken = not self._is_back or state.phase is not UpgradePhase.DONE
        return state.phase.is_final and is_taken

    def waits(self, look: Callable[[], str]) -> None:
        """Print, now and then, what is waited for, where that has changed."""
        self._looks += 1
        if self._looks % self._EVERY:
            return
        waits = look()
        if waits and waits != self._shown:
            note(f"waits: {waits}")
        self._shown = waits
