"""scripts/bench adjunct, its sections without a broker, on small stores."""

from __future__ import annotations

import pytest
from benchmarks.adjunct import join, swap
from benchmarks.adjunct.stores import built_store, keys_in_disorder, values_of


def test_versions_take_their_places_and_pauses_are_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each version says that it is built; the figures are of all but the first."""
    found = {row.what: row for row in swap.rows(records=1_000, versions=3)}
    assert capsys.readouterr().err.count("version ") == 3
    (pause,) = (row for what, row in found.items() if what.startswith("pause of the swap"))
    assert pause.target == "<= 50 ms"
    assert all(row.number > 0 for what, row in found.items() if "mean" not in what)


def test_a_join_is_measured_hot_and_cold() -> None:
    """Both have the rates that they are to reach beside them."""
    hot, cold = join.rows(records=2_000)
    assert hot.target.startswith(">= 1,000,000")
    assert cold.target.startswith(">= 300,000")


def test_the_store_that_is_measured_serves_what_was_built() -> None:
    """The version is seen once its end has come and the side thread has done its work."""
    keys = keys_in_disorder(10, 1)
    assert sorted(keys) == sorted(keys_in_disorder(10, 2))
    values = values_of(keys)
    with built_store() as store:
        store.take(keys, values)
        before = store.served
        store.ends()
        while store.served is None:
            store.settle()
        assert before is None
        assert store.sink.entries.get_all(keys) == values
