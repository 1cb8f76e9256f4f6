"""What a job's pipeline is to Spark: a function of the job's own, or a statement of SQL.

Neither is called here, nor is pyspark imported but by what a call gets.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream
from homeport.container.classes import PIPELINE_CLASS, load_function
from homeport.container.spark.inputs import ALL, WHOLE, Takes
from homeport.container.spark.sql_text import mentioned, quoted, with_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frames = Mapping[str, "DataFrame"]
"""{name: frame}."""

_FRAMES = "frames"
_PLAIN = frozenset({"Project", "Filter", "SubqueryAlias", "View", "Generate", "Window"})
"""Steps of a plan, each row of which is made of one row of what is below."""
_SPARK_ERRORS = "pyspark.errors."


class Work(Protocol):
    """``takes``: the frames that it is called with."""

    @property
    def takes(self) -> Takes:
        """{name of a frame: its stream}."""

    def __call__(self, frames: Frames) -> DataFrame:
        """What the pipeline makes of them."""


class FunctionWork:
    """A function of one frame with all rows, of ``frames``, or of frames by the streams' names."""

    def __init__(self, takes: Takes, call: Callable[[Frames], DataFrame]) -> None:
        """``call``: the function, given what it takes."""
        self.takes = takes
        self._call = call

    def __call__(self, frames: Frames) -> DataFrame:
        """What the function returns."""
        return self._call(frames)

    @staticmethod
    def load(name: str, streams: Mapping[str, SystemStream]) -> FunctionWork:
        """The work of the function ``module:function``.

        * It has one parameter: it gets one frame with the rows of all streams.
        * That one is called ``frames``: it gets {stream: frame}, one for each input.
        * It has several: each is the name of an input, with ``_`` for what no name in Python has.

        Raises:
            ConfigError: it cannot be imported, or has other parameters.
        """
        function = load_function(name)
        required = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}
        ]
        if required == [_FRAMES]:
            return FunctionWork(streams, lambda frames: function(dict(frames)))
        by_parameter = {re.sub(r"\W", "_", stream): stream for stream in streams}
        if len(required) > 1 and by_parameter.keys() >= {*required}:
            taken = {parameter: by_parameter[parameter] for parameter in required}
            return FunctionWork(
                {stream: streams[stream] for stream in taken.values()},
                lambda frames: function(**{p: frames[stream] for p, stream in taken.items()}),
            )
        _require_one(name, function, by_parameter)
        return FunctionWork(WHOLE, lambda frames: function(frames[ALL]))


def _require_one(
    name: str, function: Callable[..., object], by_parameter: Mapping[str, str]
) -> None:
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise ConfigError(
            PIPELINE_CLASS,
            name,
            "it must name a function of one DataFrame that returns a DataFrame, of frames, or of "
            "parameters named by the input's streams",
            f"called with one: {error}; the streams are {', '.join(by_parameter) or 'unknown'}",
        ) from None


class SqlWork:
    """One statement, whose tables are the input's streams, and ``input`` for all of them.

    Args:
        statement: its text.
        streams: {name: stream} of the inputs.
        keeps: columns of the input that the rows are to have. Where the statement takes rows as
            they come and leaves one out it is added.
    """

    def __init__(
        self, statement: str, streams: Mapping[str, SystemStream], keeps: Sequence[str]
    ) -> None:
        """Spark has not seen it yet."""
        self._statement = statement
        self._keeps = keeps
        self._settled: str | None = None
        named = mentioned(statement, dict.fromkeys([ALL, *streams])) or [ALL]
        # Of one stream there is one frame, which goes by both names.
        is_one = len(streams) == 1
        self.takes: Takes = WHOLE if is_one else {name: streams.get(name) for name in named}
        self._views = {name: ALL if is_one else name for name in named}

    def __call__(self, frames: Frames) -> DataFrame:
        """The statement's frame; the first call settles which columns are added."""
        with self._viewed(frames) as session:
            if self._settled is None:
                self._settled = self._with_kept(session)
            return session.sql(self._settled)

    @contextmanager
    def _viewed(self, frames: Frames) -> Iterator[SparkSession]:
        session = next(iter(frames.values())).sparkSession
        for name, source in self._views.items():
            frames[source].createOrReplaceTempView(quoted(name))
        try:
            yield session
        finally:
            for name in self._views:
                session.catalog.dropTempView(quoted(name))

    def _with_kept(self, session: SparkSession) -> str:
        # It must be a query: Spark would run a command at once, such as DROP.
        state: Any = session._jsparkSession.sessionState()  # noqa: SLF001 - pyspark has no such call
        state.sqlParser().parseQuery(self._statement)
        frame = session.sql(self._statement)
        missing = [name for name in self._keeps if name not in frame.columns]
        longer = with_columns(self._statement, missing) if missing and _is_plain(frame) else None
        if longer is None:
            return self._statement
        try:
            found = session.sql(longer)
        except Exception as error:  # pyspark is imported by no module: its errors go by name
            if not type(error).__module__.startswith(_SPARK_ERRORS):
                raise
            return self._statement  # a column is not there to be added, or stands for two
        is_same = found.columns == [*missing, *frame.columns] and _is_plain(found)
        return longer if is_same else self._statement


def _is_plain(frame: DataFrame) -> bool:
    """Whether each row is made of one row of the input."""
    plan: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - pyspark shows no plan
    while plan.children().size() == 1 and plan.nodeName() in _PLAIN:
        plan = plan.children().head()
    return bool(plan.children().isEmpty() and not plan.nodeName().startswith("CTE"))
