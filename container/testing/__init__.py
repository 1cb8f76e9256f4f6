"""TestRunner: a job's own code under pytest, with Kafka's part in memory. See docs/testing.md."""

from homeport.container.testing.broker import Record
from homeport.container.testing.runner import TestRunner, TestRunnerError

__all__ = ["Record", "TestRunner", "TestRunnerError"]
