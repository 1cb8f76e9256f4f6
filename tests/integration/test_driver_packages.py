"""The package that the driver's orders name, and what launchers say of theirs."""

from __future__ import annotations

import hashlib
import random

from driver_attempts import FIRST, NM1, P0, Am, driven

from homeport.job_coordinator.http.messages import CheckIn, OrderKind
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.model.ids import ResourceId

ONE, OTHER = "ab" * 32, "cd" * 32
R1 = ResourceId("container_1_0001_01_000002")


@driven()
async def test_orders_name_the_package_of_the_processor(am: Am) -> None:
    """A permit has it, and a launcher with a container hears what the next permit will have."""
    packages = {P0: ONE}
    am.driver.package_of = packages.get
    run = await am.permitted()
    assert (run.incarnation, run.package) == (FIRST, ONE)
    assert (await am.check_in(FIRST)).package == ONE
    packages[P0] = OTHER
    assert (await am.check_in(FIRST)).package == OTHER
    packages.clear()
    assert (await am.check_in(FIRST)).package is None
    check_in = CheckIn(R1, "h-0_1", 1, NM1, 42, FIRST, package=ONE, prepared=OTHER)
    await am.backend.check_in(check_in)
    launcher = am.driver.launchers.find(R1)
    assert launcher is not None
    assert (launcher.package, launcher.prepared) == (ONE, OTHER)
    await am.finished()


@driven()
async def test_without_an_upgrade_no_order_names_one(am: Am) -> None:
    """So that a launcher of an earlier release runs the job as before."""
    assert (await am.until_order(OrderKind.RUN)).package is None
    assert "package" not in (await am.check_in(FIRST)).to_json()
    await am.finished()


@driven()
async def test_any_attempt_serves_what_the_stream_has(am: Am) -> None:
    """Pieces that a tool has written, once the driver has read them."""
    data = random.Random(1).randbytes(250_000)  # noqa: S311 - equal in each run
    name = hashlib.sha256(data).hexdigest()
    await am.until_order(OrderKind.RUN)
    assert await am.backend.package(name) is None
    am.stream.write(JobPackageManager.messages(data))
    await am.rounds()
    assert await am.backend.package(name) == data
    am.stream.write(JobPackageManager(am.stream).messages_to_forget())
    await am.rounds()
    assert await am.backend.package(name) is None
    await am.finished()
