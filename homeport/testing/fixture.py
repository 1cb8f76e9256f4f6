"""A pytest plugin: ``pytest_plugins = ["homeport.testing.fixture"]`` in a conftest.py.

It needs pytest, which the extra ``testing`` has. On hosts, which have none, the module is empty.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

from homeport.testing.runner import TestRunner

try:
    import pytest
except ModuleNotFoundError:
    pass
else:

    @pytest.fixture
    def job_runner() -> Iterator[Callable[..., TestRunner]]:
        """Yield a function that starts a TestRunner; all of them stop when the test ends."""
        with ExitStack() as stack:
            yield lambda *args, **more: stack.enter_context(TestRunner(*args, **more))
