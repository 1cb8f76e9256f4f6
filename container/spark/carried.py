"""Columns of the input that rows keep although the pipeline does not select them.

Only functions that get a frame import pyspark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLAIN = frozenset({"Filter", "SubqueryAlias", "View", "Generate", "Window"})
"""Steps of a plan that keep the columns of the step below, and make each row from one of its."""
_PLACE = frozenset({"task", "stream", "partition", "offset"})
"""Columns that each frame of an input has, and no other leaf of a plan."""


def with_columns_of_input(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return ``frame`` with the columns ``names`` of the input before its own.

    It is returned as it is unless each of its rows comes from one row of an input, and from rows of
    other frames that are joined to it on the right.
    """
    session = frame.sparkSession
    longer = _Plans(session._jvm, names).longer(frame._jdf.queryExecution().analyzed())  # noqa: SLF001 - pyspark shows no plan
    if longer is None or not {*names} <= {column.name() for column in _all(longer.output())}:
        return frame
    jvm: Any = session._jvm  # noqa: SLF001 - as above
    made = getattr(jvm.org.apache.spark.sql.classic, "Dataset$")
    dataset = getattr(made, "MODULE$").ofRows(session._jsparkSession, longer)  # noqa: SLF001 - as above
    return type(frame)(dataset, session)


class _Plans:
    def __init__(self, jvm: Any, names: Sequence[str]) -> None:  # noqa: ANN401 - as above
        self._jvm = jvm
        self._names = frozenset(names)

    def longer(self, plan: Any) -> Any:  # noqa: ANN401 - as above
        """Return the plan with the columns of the input; None: not each row comes from one row."""
        below = _all(plan.children())
        step = plan.nodeName()
        if not below:
            return plan if _is_input(plan) else None
        if step == "Join":
            left, right = below
            if any(map(_is_input, _all(right.collectLeaves()))):
                return None
            below = [left]
        elif step != "Project" and step not in _PLAIN:
            return None
        found = self.longer(below[0])
        if found is None:
            return None
        if step != "Project":
            rest = _all(plan.children())[1:]
            return plan.withNewChildren(self._seq([found, *rest]))
        own = _all(plan.projectList())
        known = {column.exprId().id() for column in own}
        added = [
            column
            for column in _all(found.output())
            if column.name() in self._names and column.exprId().id() not in known
        ]
        plans = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        return plans.Project(self._seq([*added, *own]), found)

    def _seq(self, items: Iterable[Any]) -> Any:  # noqa: ANN401 - as above
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(made).toSeq()


def _is_input(leaf: Any) -> bool:  # noqa: ANN401 - as above
    return {column.name() for column in _all(leaf.output())} >= _PLACE


def _all(found: Any) -> list[Any]:  # noqa: ANN401 - as above
    return [found.apply(index) for index in range(found.size())]
