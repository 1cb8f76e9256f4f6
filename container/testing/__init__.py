"""The former name of ``homeport.testing``; tests of jobs that import it go on."""

from homeport.testing import Record, TestRunner, TestRunnerError

__all__ = ["Record", "TestRunner", "TestRunnerError"]
