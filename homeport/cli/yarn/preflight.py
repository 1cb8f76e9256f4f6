"""What must hold before ``run-job`` writes anything: Kafka, YARN, the package, the classes.

Each check raises ConfigError or UnavailableError with one line that names key, value, rule and
remedy; none of them changes anything of the job.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from homeport.appmaster.environment.job_python import JobPython
from homeport.cli.host.class_question import NEW_FORM, Question
from homeport.cli.job import check_job_model as check_job_model_program
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.settings.pipeline_section import SPARK_START_S, PipelineConfig
from homeport.config.settings.reporters_section import snapshot_reporters
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.client_files import token_folder
from homeport.job_coordinator.grouper.factories import has_own_grouper
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.neighbour_share import neighbour_share
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.grouper.validation import uneven_inputs
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.state_facts import StoreSchemas
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.parent_death import run_child
from homeport.job_coordinator.planning.next_model import counts_now
from homeport.job_coordinator.private_files import private_folder

_KAFKA_TIMEOUT_S = 10.0
_CHECK_TIMEOUT_S = 120.0
"""Of a program that loads the job's code; one that starts a Spark has that one's time besides."""
_NOTE = "note: "


def warn_of_reporters(config: Config, say: Callable[[str], None]) -> None:
    """Warn where the topic of a snapshot reporter is missing: the job runs without it."""
    if keys.TASK_OUTPUTS_CREATE_PARTITIONS.read(config):
        return
    for reporter in snapshot_reporters(config):
        name, topic = reporter.stream.system, reporter.stream.stream
        system = SystemConfig.of(config, name)
        if topic not in TopicAdmin(system, _KAFKA_TIMEOUT_S).partition_counts([topic]):
            say(
                f"warning: {keys.METRICS_REPORTER_STREAM.named(reporter.name)} = "
                f"{str(reporter.stream)!r}: topic {topic!r} does not exist at "
                f"{system.bootstrap_servers}: no snapshot is sent until it is created"
            )


def check_job_model(
    config: Config, say: Callable[[str], None], *, is_reset: bool = False
) -> JobModel | None:
    """Return the JobModel that a new job gets of the inputs as they are now.

    Warns of inputs that tasks cannot join, and notes what a lost host gives mixed containers to
    bear. ``is_reset``: as of ``counts_now``. None: the job's own grouper makes it, which is in its
    package; ``check_own_groupers`` checks that. ConfigError: no model can be made, for instance of
    more containers than tasks.
    """
    if has_own_grouper(config):
        return None
    counts = counts_now(config, is_reset=is_reset)
    uneven = uneven_inputs(config, counts)
    if uneven is not None:
        say(f"warning: {uneven}")
    # The earlier assignment decides the owner of each task, not whether a model is possible.
    model = calculate_job_model(config, counts, NOTHING)
    share = neighbour_share(model)
    if share is not None:
        say(f"{_NOTE}{share}")
    return model


def check_token_folder(environment: Mapping[str, str]) -> None:
    """Require a folder that can hold the token of the job, as this user's alone."""
    with private_folder(token_folder(environment)):
        pass


def check_classes(
    config: Config,
    python: JobPython,
    import_path: Path,
    say: Callable[[str], None],
    schemas: Mapping[str, StoreSchemas] = MappingProxyType({}),
    *,
    has_way_back: bool = False,
) -> dict[str, str]:
    """Require that the job's classes import, by its interpreter and with its package.

    Of a job with a pipeline, require too that Java takes the options of its Spark. It prints a
    note for each warning of the job's declaration.

    Returns {store: the form of its values}, of those that get values of a further schema.

    ``schemas``: {changelog: by what it was written}, by the coordinator stream. ``has_way_back``:
    the code that runs must read what this code writes. HomeportError: a class does not import, the
    interpreter has no homeport, or a schema in the package does not read what a store has.
    """
    command = ["-m", "homeport.cli.host.check_classes"]
    question = msgspec.json.encode(Question.of(config, schemas, has_way_back=has_way_back))
    found: dict[str, str] = {}
    for line in _check_with_package(python, command, import_path, question):
        if line.startswith(_NOTE):
            say(line)
        if line.startswith(NEW_FORM):
            store, form = line.removeprefix(NEW_FORM).split(" ", 1)
            found[store] = form
            say(f"note: new values of store {store!r} are {form}; the others stay as they are")
    return found


def check_pipeline(
    config: Config, python: JobPython, import_path: Path, say: Callable[[str], None]
) -> None:
    """Run the pipeline over no rows in a Spark here, where the job wants that before it starts.

    Where this machine has no Java, or its Spark does not start, it prints a note: only the
    containers will check it. HomeportError: Spark refuses it, or its rows lack a column.
    """
    pipeline = PipelineConfig.of(config)
    if pipeline is None or not pipeline.is_checked_first:
        return
    command = ["-m", "homeport.cli.host.check_pipeline"]
    given = json.dumps(dict(config)).encode()
    limit_s = SPARK_START_S + _CHECK_TIMEOUT_S
    for line in _check_with_package(python, command, import_path, given, limit_s):
        if line.startswith(_NOTE):
            say(line)


def check_own_groupers(config: Config, python: JobPython, import_path: Path) -> None:
    """Check as ``check_job_model``, with the job's interpreter and package, where it has a grouper.

    HomeportError: no JobModel can be made; the line names key and class of the grouper.
    UnavailableError: Kafka did not answer.
    """
    if not has_own_grouper(config):
        return
    counts = counts_now(config)
    command = ["-m", check_job_model_program.__name__]
    asked = check_job_model_program.question(config, counts)
    _check_with_package(python, command, import_path, asked)


def _check_with_package(
    python: JobPython,
    command: list[str],
    import_path: Path,
    given: bytes = b"",
    limit_s: float = _CHECK_TIMEOUT_S,
) -> list[str]:
    """Return what the program, run as on the nodes, prints; require that it finds no fault."""
    # What only this shell's PYTHONPATH or its working directory has would be missing there.
    environment = {
        **os.environ,
        "PYTHONPATH": str(import_path),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        done = run_child([*python.here, *command], limit_s, given=given, environment=environment)
    except (OSError, subprocess.TimeoutExpired) as e:
        remedy = "name the interpreter that has homeport"
        raise ConfigError(python.key, python.value, f"it cannot be run ({e})", remedy) from None
    if done.returncode == 0:
        _require_checked(done.stdout, import_path)
        return done.stdout.decode(errors="replace").splitlines()
    lines = [
        line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()
    ]
    last = lines[-1] if lines else f"exit code {done.returncode}"
    if last.startswith("error: "):
        raise HomeportError(last.removeprefix("error: "))  # one line of that form already
    rule = f"it cannot check the job's classes ({last})"
    remedy = "name an interpreter that has homeport installed"
    raise ConfigError(python.key, python.value, rule, remedy)


def _require_checked(output: bytes, import_path: Path) -> None:
    """Require that the program ran to its end: the job's code may end it early, with code 0."""
    last = output.decode(errors="replace").splitlines()[-1:]
    if last != [check_job_model_program.CHECKED]:
        rule = "the job's code ends the process that loads it, with exit code 0"
        remedy = "let no module exit while it is imported"
        raise keys.YARN_PACKAGE_PATH.error(import_path, rule, remedy)
