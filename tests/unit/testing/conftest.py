"""The fixture of the plugin."""

from homeport.testing.fixture import job_runner

__all__ = ["job_runner"]
