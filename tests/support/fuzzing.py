"""Fuzzing for a time: seeds one after the other, each printed, and failures made small.

``HOMEPORT_FUZZ_SEED`` runs that seed alone, ``HOMEPORT_FUZZ_S`` sets the seconds of a short run.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

SHORT_S = float(os.environ.get("HOMEPORT_FUZZ_S", "12"))
LONG_S = 3600.0
_EXAMPLES = 150
_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def fuzz(check: Callable[[st.DataObject], None], seconds: float) -> None:
    """Call ``check`` with data of one seed after the other; the first one that fails is raised.

    Its smallest input is printed by hypothesis, the seed here.
    """
    only = os.environ.get("HOMEPORT_FUZZ_SEED")
    ends = time.monotonic() + seconds
    rounds = 0
    while rounds == 0 or (time.monotonic() < ends and only is None):
        number = random.SystemRandom().randrange(2**32) if only is None else int(only)
        sys.stdout.write(f"HOMEPORT_FUZZ_SEED={number}\n")
        sys.stdout.flush()  # a library in C may end the process
        run = settings(
            max_examples=_EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=_CHECKS,
            phases=[Phase.generate, Phase.shrink],
        )(given(st.data())(check))
        seed(number)(run)()
        rounds += 1
    sys.stdout.write(f"{rounds * _EXAMPLES} examples\n")
