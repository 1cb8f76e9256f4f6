"""What run-job and homeport upgrade find of a package's schema, and what they write of it."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from jobs_at_hand import job_at_hand
from small_jobs import KEYS, store_keys
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.host.check_classes import main
from homeport.cli.job.job_view import JobView
from homeport.cli.yarn import preflight
from homeport.cli.yarn.state_check import announce
from homeport.cli.yarn.upgrade_command import _Asked, _checked
from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.config.settings.serde_names import SchemaSerde
from homeport.container.serde.forms import form_of, forms_of, reading_of
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.state_facts import StateFactManager, StoreForms, StoreSchemas

if TYPE_CHECKING:
    from homeport.appmaster.environment.job_python import JobPython

FILE = "serializers.registry.rec.schema.file"
CONFIG = Config(
    {
        **KEYS,
        **store_keys("s", "string", msg_serde="rec", changelog="kafka.s"),
        "serializers.registry.rec.class": "avro",
        FILE: "rec.avsc",
    }
)
TASK = """
from homeport.container.api import BatchTask
class C(BatchTask):
    def process_batch(self, table, collector): pass
"""


def _schema(*fields: tuple[str, str], default: int | None = None) -> str:
    about = {} if default is None else {"default": default}
    parts = [{"name": name, "type": kind, **about} for name, kind in fields]
    return json.dumps({"type": "record", "name": "R", "fields": parts})


A = _schema(("n", "int"))


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """Of a job whose store has values of the schema A."""
    stream, facts = InMemoryCoordinatorStream(), StateFactManager(InMemoryCoordinatorStream())
    serde = SchemaSerde("avro", "rec", A)
    stream.write(
        [
            *(wire.set_config(*item) for item in CONFIG.items()),
            *facts.form_messages({"kafka.s": forms_of(("string", serde))}),
            facts.reading_message("kafka.s", reading_of(("k", "string"), ("v", serde))),
        ]
    )
    stream.catch_up()
    return stream


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that looks at the package runs here."""

    def run(_: object, __: object, folder: Path, given: bytes) -> list[str]:
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.syspath_prepend(str(folder))
            patch.delitem(sys.modules, "m", raising=False)
            if main(io.StringIO(given.decode())):
                raise HomeportError(err.getvalue())
        return out.getvalue().splitlines()

    monkeypatch.setattr(preflight, "_check_with_package", run)


def _package(folder: Path, schema: str) -> Path:
    (folder / "m.py").write_text(TASK)
    (folder / "rec.avsc").write_text(schema)
    return folder


def test_run_job_refuses_a_schema_or_admits_it(
    tmp_path: Path, stream: InMemoryCoordinatorStream
) -> None:
    """The line has store, field, rule and remedy; nothing is written then."""
    schemas, notes = StateFactManager(stream).schemas(), list[str]()

    def checked(schema: str) -> dict[str, str]:
        folder = _package(tmp_path, schema)
        python = cast("JobPython", None)  # as the program runs here
        return preflight.check_classes(CONFIG, python, folder, notes.append, schemas)

    assert checked(A) == {}
    rule = "of store 's' were written by avro .*; field m: it is missing in older values"
    with pytest.raises(HomeportError, match=rule):
        checked(_schema(("n", "int"), ("m", "int")))
    forms = checked(_schema(("n", "long")))
    assert [*forms] == ["s"]
    assert notes == [f"note: new values of store 's' are {forms['s']}; the others stay as they are"]
    job = job_at_hand(CONFIG, stream)
    announce(job, {})
    announce(job, forms)
    stream.catch_up()
    assert StateFactManager(stream).schemas()["kafka.s"].announced == forms["s"]


def test_an_upgrade_whose_code_has_no_way_back_is_refused_at_its_beginning(
    tmp_path: Path, stream: InMemoryCoordinatorStream
) -> None:
    """A field that comes is passed over by the code that runs; a wider one it cannot read."""

    def upgraded(schema: str) -> None:
        view = JobView(CONFIG, "topic", stream, None)
        _checked(view, "app", _Asked(str(_package(tmp_path, schema)), None))

    upgraded(A)
    upgraded(_schema(("n", "int"), ("m", "int"), default=0))
    with pytest.raises(HomeportError, match="which does not read it; field n: long is no int"):
        upgraded(_schema(("n", "long")))
    with pytest.raises(HomeportError, match="field n: it is missing in older values"):
        upgraded(_schema(("m", "int"), default=0))


def test_run_job_refuses_another_schema_of_a_repartitions_keys(
    tmp_path: Path, stream: InMemoryCoordinatorStream
) -> None:
    """It would be read as a value of a store, and is no key of the repartition."""
    own = {"task.repartition.by-n": "2", "task.repartition.by-n.key.serde": "rec"}
    form = form_of(SchemaSerde("avro", "rec", A), is_key=True)
    topic = "kafka.__homeport_repartition_j_1_by-n"
    written = {topic: StoreSchemas(StoreForms(form, "bytes"))}
    schemas, notes = {**StateFactManager(stream).schemas(), **written}, list[str]()

    def checked(schema: str) -> None:
        python = cast("JobPython", None)  # as the program runs here
        folder = _package(tmp_path, schema)
        preflight.check_classes(CONFIG.merged(own), python, folder, notes.append, schemas)

    checked(A)
    with pytest.raises(HomeportError, match=r"_by-n' were written by avro .*another repa"):
        checked(_schema(("n", "long")))
