"""The former name of the pytest plugin ``homeport.testing.fixture``."""

from homeport.testing.fixture import *  # noqa: F403 - whatever it has
