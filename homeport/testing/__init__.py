"""TestRunner: a job's own code under pytest, with Kafka's part in memory. See docs/testing.md."""

from homeport.testing.broker import Record, TestRunnerError
from homeport.testing.runner import TestRunner

__all__ = ["Record", "TestRunner", "TestRunnerError"]
