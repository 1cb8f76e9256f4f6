"""How often Python looks for garbage that holds itself, in a driver."""

from __future__ import annotations

import gc

_YOUNG, _MIDDLE, _OLD = 20_000, 20, 50


def look_less_often() -> None:
    """The state of a large job is looked through fifty times less often.

    It lives long and nothing in it holds itself, so each look is in vain: with 20,000 containers it
    kept one event waiting for a third of a second, and cost a quarter of all the driver's time.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
