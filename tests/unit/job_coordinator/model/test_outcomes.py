"""How a stream container ended, and how its stores were restored."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from homeport.config.errors import WireError
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind, StopCause
from homeport.job_coordinator.model.wire_form import value_of

TAIL = Restored(RestoreKind.TAIL, 5, 9, 5)


def test_nothing_is_fenced_after_an_end_in_order() -> None:
    """Any other end may leave a transaction open, also one that is no fault."""
    assert {c for c in StopCause if c.is_in_order} == {StopCause.FINISHED, StopCause.ORDERED}


def test_a_kind_that_is_not_known_is_refused() -> None:
    """The fault names the value and its path, in a line of bounded length."""
    assert value_of(Restored, TAIL.to_json(), "a restore") == TAIL
    with pytest.raises(WireError, match=r"a restore: Invalid enum value 'half' - at `\$\.kind`"):
        value_of(Restored, TAIL.to_json() | {"kind": "half"}, "a restore")
    with pytest.raises(WireError, match=r"at `\$\.kind`") as caught:
        value_of(Restored, TAIL.to_json() | {"kind": "half\n" * 500}, "a restore")
    assert len(str(caught.value)) < 350
    assert "\n" not in str(caught.value)


def test_a_sum_is_made_of_each_kind_and_refusal() -> None:
    """It names no offsets; of two reasons it has the first."""
    full = [Restored(RestoreKind.FULL, 0, 9, n, f"{n}: damaged", "damaged-store") for n in (1, 2)]
    assert Restored.sums([TAIL, *full]) == {
        "1 tasks, tail": replace(TAIL, from_offset=None, to_offset=None),
        "2 tasks, full, damaged-store": Restored(
            RestoreKind.FULL, None, None, 3, "1: damaged", "damaged-store", tasks=2
        ),
    }
    assert Restored.sums([]) == {}
