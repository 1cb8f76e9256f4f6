"""The part of a job coordinator's backend that speaks to launchers, where a test has none."""

from __future__ import annotations

from homeport.job_coordinator.http.messages import CheckIn, Order, Stopped, Unfit


class NoLaunchers:
    """Each call of a launcher is a fault of the test."""

    async def package(self, name: str) -> bytes | None:
        """No launcher is in these tests."""
        raise AssertionError(f"no launcher is in these tests: {name}")

    async def check_in(self, message: CheckIn) -> Order:
        """No launcher is in these tests."""
        raise AssertionError(f"no launcher is in these tests: {message}")

    async def stopped(self, message: Stopped) -> None:
        """No launcher is in these tests."""
        raise AssertionError(f"no launcher is in these tests: {message}")

    async def unfit(self, message: Unfit) -> None:
        """No launcher is in these tests."""
        raise AssertionError(f"no launcher is in these tests: {message}")
