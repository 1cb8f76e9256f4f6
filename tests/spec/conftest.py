"""The machine of the allocator's unit tests, which checks every invariant after every step."""

from __future__ import annotations

from tests.unit.appmaster.allocation.conftest import machine, machine_with

__all__ = ["machine", "machine_with"]
