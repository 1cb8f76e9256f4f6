"""Sums of tables: exact where Arrow's would wrap round, in one line where Arrow has none."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.container.windows.partials import grouped

_NS = 1_700_000_000_000_000_000


def _of(column: pa.Array, *functions: str) -> dict[str, Any]:
    table = pa.table({"key": ["a"] * len(column), "v": column})
    ((by, found),) = grouped(table, ["key"], [("v", function) for function in functions])
    assert by == ["a"]
    return found


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), _NS),
        (pa.int64(), -(1 << 63)),
        (pa.uint64(), (1 << 64) - 1),
        (pa.int32(), (1 << 31) - 1),
        (pa.decimal128(38, 0), Decimal("9" * 38)),
        (pa.decimal128(38, 2), Decimal("-" + "9" * 36 + ".99")),
        (pa.decimal256(76, 0), Decimal("9" * 76)),
        (pa.decimal128(4, 2), Decimal("99.99")),
    ],
)
def test_a_sum_beyond_its_type_is_exact(kind: pa.DataType, value: int | Decimal) -> None:
    """Also beside other functions, with nulls left out."""
    found = _of(pa.array([value] * 6 + [None], kind), "sum", "hash_sum", "min", "count", "list")
    assert Fraction(found["v_sum"]) == Fraction(value) * 6
    assert (found["v_min"], found["v_count"]) == (value, 6)
    assert found["v_list"] == [value] * 6 + [None]


def test_a_product_and_a_mean_beyond_their_type_are_exact() -> None:
    """Of whole numbers and decimals."""
    assert _of(pa.array([1 << 40] * 4), "product") == {"v_product": 1 << 160}
    nines = Decimal("9" * 38)
    column = pa.array([nines, nines, nines], pa.decimal128(38, 0))
    assert _of(column, "mean", "product") == {
        "v_mean": nines,
        "v_product": Decimal(int(nines) ** 3),
    }


def test_what_fits_and_what_is_not_whole_is_arrow_s() -> None:
    """A float's sum becomes infinite, and no other number."""
    assert _of(pa.array([1, 2, None]), "sum", "mean") == {"v_sum": 3, "v_mean": 1.5}
    assert _of(pa.array([None, None], pa.int64()), "sum", "product") == {
        "v_sum": None,
        "v_product": None,
    }
    assert _of(pa.array([1e308] * 6), "sum") == {"v_sum": math.inf}
    assert _of(pa.array([_NS] * 6), "mean", "variance") == {"v_mean": float(_NS), "v_variance": 0.0}
    assert _of(pa.array([Decimal("1.50")] * 2, pa.decimal128(3, 2)), "max") == {
        "v_max": Decimal("1.50")
    }
    assert _of(pa.array([True, False]), "sum") == {"v_sum": 1}


def test_a_group_of_nulls_beside_one_that_overflows_has_no_sum() -> None:
    """As Arrow has it."""
    table = pa.table({"key": ["a", "a", "b"], "v": pa.array([_NS * 5, _NS * 5, None])})
    assert {by[0]: row["v_sum"] for by, row in grouped(table, ["key"], [("v", "sum")])} == {
        "a": _NS * 10,
        "b": None,
    }


def test_first_and_last_go_by_the_order_of_rows() -> None:
    """Which Arrow's threads do not keep."""
    found = _of(pa.array(range(200_000)), "first", "last")
    assert found == {"v_first": 0, "v_last": 199_999}


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (("v", "nope"), r"cannot aggregate \('v', 'nope'\) of string: No function registered"),
        (("v", "sum"), r"cannot aggregate \('v', 'sum'\) of string: .*no kernel"),
        (("w", "sum"), r"the aggregate \('w', 'sum'\): the table has no such column"),
    ],
)
def test_what_arrow_cannot_do_is_one_line(aggregate: tuple[str, str], expected: str) -> None:
    """With the aggregate."""
    table = pa.table({"key": ["a"], "v": ["text"]})
    with pytest.raises(ValueError, match=expected) as error:
        list(grouped(table, ["key"], [aggregate]))
    assert "\n" not in str(error.value)


@pytest.mark.search
@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.none() | st.integers(-(1 << 63), (1 << 63) - 1)),
        min_size=1,
        max_size=12,
    )
)
def test_sums_and_products_are_python_s(rows: list[tuple[str, int | None]]) -> None:
    """Of any whole numbers."""
    table = pa.table({"key": [k for k, _ in rows], "v": pa.array([v for _, v in rows], pa.int64())})
    for (key,), found in grouped(table, ["key"], [("v", "sum"), ("v", "product")]):
        own = [v for k, v in rows if k == key and v is not None]
        assert found["v_sum"] == (sum(own) if own else None)
        assert found["v_product"] == (math.prod(own) if own else None)
