"""Names that users and their scripts type, read and scrape: each is in a file, and stays.

A name that goes breaks someone; one that comes is a promise. Both change a file of
``tests/golden/public`` in the same commit, and the changelog.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import dashboard_jobs as jobs
import pytest
import typer
from aiohttp import web

import homeport
import homeport.testing
import homeport.windows
from homeport.appmaster.driver.actions.operator_actions import DriverActions
from homeport.appmaster.driver.driver import Driver
from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.cli.job import coordinator_stream_writer
from homeport.cli.main import COMMANDS
from homeport.cli.yarn import run_job
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.loading.declared_job import DeclaredJob
from homeport.container import api, windows
from homeport.job_coordinator.coordinator_stream.message import MessageType, Namespace
from homeport.job_coordinator.http.actions import ACTION_ROUTE, Operators
from homeport.job_coordinator.http.audit import AuditTrail
from homeport.job_coordinator.http.guard import Guard
from homeport.job_coordinator.http.port.port import Port
from homeport.job_coordinator.http.server import JobCoordinatorServer
from pages_check.metrics_page import families

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "public"


def _commands() -> Iterator[str]:
    apps = {f"homeport {name}": command.app() for name, command in COMMANDS.items()}
    apps |= {"run-job": run_job.app, "coordinator-stream-writer": coordinator_stream_writer.app}
    for name, app in apps.items():
        found = typer.main.get_command(app)
        for word, command in getattr(found, "commands", {"": found}).items():
            line = f"{name} {word}".strip()
            yield line
            for parameter in command.params:
                given = " ".join([*parameter.opts, *parameter.secondary_opts])
                yield f"{line} {given}{' (required)' if parameter.required else ''}"


def _keys() -> Iterator[str]:
    for key in keys.ALL:
        yield key.name
        yield from (f"{old} (older name of {key.name})" for old in key.legacy)


def _routes(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield method, path, and the role that it needs while reading is open to all."""
    ports: list[Port] = []

    async def opened(port: Port, *_: object) -> tuple[str, int]:
        ports.append(port)
        return "127.0.0.1", 1

    monkeypatch.setattr(Port, "open", opened)
    job = jobs.JobOnPage(jobs.settled_job(1, 2))
    operators = Operators(jobs.ActionsOnPage(job), AuditTrail(lambda _: None))
    address = "127.0.0.1", 0
    server = JobCoordinatorServer(job, "token", *address, job, operators=operators, launchers=job)
    keeper = LeaseServer(LeaseTable(1, 1), RenewalGuard(1, 1), lease_ms=1, attempt=1, access="t")

    async def run() -> None:
        await server.start()
        await keeper.start(*address, None)
        await server.stop()
        await keeper.stop()

    asyncio.run(run())
    for name, port in zip(("driver", "lease keeper"), ports, strict=True):
        yield from (f"{name}: {line}" for line in _served(port._runner.app))


def _served(app: web.Application) -> Iterator[str]:
    """Yield each route of ``app``; of a route for all actions one line for each action."""
    guards = (getattr(check, "__self__", None) for check in app.middlewares)
    rights = next(guard for guard in guards if isinstance(guard, Guard))._rights
    driver = cast("Driver", SimpleNamespace())
    for route in app.router.routes():
        if route.resource is None or route.method == "HEAD":
            continue
        path = route.resource.canonical
        match = SimpleNamespace(route=route)
        asked = cast("web.Request", SimpleNamespace(method=route.method, match_info=match))
        role = rights.needed(asked, None).name.lower()
        names = DriverActions(driver, Config(), lambda _: None).names
        paths = [path.replace("{action}", n) for n in names] if path == ACTION_ROUTE else [path]
        yield from (f"{route.method} {path} {role}" for path in paths)


def _metrics() -> Iterator[str]:
    for place, found in families().items():
        for family in found:
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = ", ".join(getattr(family, "_labelnames", ()))
            yield f"{name} {family.type} {{{labels}}} ({place})"


def _records() -> Iterator[str]:
    yield from (*MessageType, *Namespace)


def _names() -> Iterator[str]:
    """Yield each name that a job or its test imports, and what a class has of its own."""
    for module in (homeport, homeport.testing, homeport.windows):
        for name in sorted(module.__all__):
            found = getattr(module, name)
            yield f"{module.__name__}.{name}"
            if isinstance(found, type):
                own = [c for c in found.__mro__ if c.__module__.startswith("homeport.")]
                members = {member for c in own for member in vars(c) if member[0] != "_"}
                # What commands ask a job for is no promise.
                members -= {*vars(DeclaredJob)}
                yield from (f"{module.__name__}.{name}.{member}" for member in sorted(members))


def _require(path: Path, lines: Iterator[str], config: pytest.Config) -> None:
    """Compare with the file; with ``--rewrite`` it becomes what the code has."""
    found = sorted(lines)
    if config.getoption("--rewrite"):
        path.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    known = path.read_text(encoding="utf-8").splitlines()
    gone, come = sorted({*known} - {*found}), sorted({*found} - {*known})
    assert not gone, f"these names are gone, and users have them: {gone}"
    assert not come, f"new names, for ever: add them to {path.name}, and to CHANGELOG.md: {come}"
    assert known == found, "one line for each name, in sorted order"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("commands", _commands),
        ("configuration-keys", _keys),
        ("metrics", _metrics),
        ("python-names", _names),
        ("records", _records),
    ],
)
def test_public_names_are_those_of_the_file(
    name: str, lines: Callable[[], Iterator[str]], pytestconfig: pytest.Config
) -> None:
    """No name goes or comes without its file."""
    _require(GOLDEN / f"{name}.txt", lines(), pytestconfig)


def test_routes_are_those_of_the_file(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """Method, path and role."""
    _require(GOLDEN / "routes.txt", _routes(monkeypatch), pytestconfig)


def test_each_file_has_its_names() -> None:
    """A file that no test reads would promise nothing."""
    files = {path.stem for path in GOLDEN.iterdir()}
    assert files == {
        *("commands", "configuration-keys", "metrics", "python-names", "records", "routes")
    }


def test_former_names_of_modules_have_the_same_objects() -> None:
    """Jobs that were written with them run on; what is no public name is an error as usual."""
    for name in homeport.__all__:
        if hasattr(api, name):
            assert getattr(homeport, name) is getattr(api, name)
    assert {*windows.__all__} == {*homeport.windows.__all__}
    assert homeport.windows.Windows is windows.Windows
    assert {*homeport.__all__} <= {*dir(homeport)}
    with pytest.raises(AttributeError, match="module 'homeport' has no attribute 'StreamTusk'"):
        _ = homeport.StreamTusk  # type: ignore[attr-defined]  # that is the fault


@pytest.mark.parametrize(("known", "word"), [("a\nb\n", "gone"), ("", "new names")])
def test_a_changed_name_is_seen(
    known: str, word: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """One that goes, and one that comes."""
    path = tmp_path / "x.txt"
    path.write_text(known, encoding="utf-8")
    if not pytestconfig.getoption("--rewrite"):
        with pytest.raises(AssertionError, match=word):
            _require(path, iter(["a"]), pytestconfig)
