"""The work of a job's pipeline in Spark: a function of the job's own, or a statement of SQL.

No module of the container imports pyspark: a call of the work gets its objects.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream
from homeport.container.classes import PIPELINE_CLASS, load_function
from homeport.container.spark.inputs import ALL, WHOLE, Takes
from homeport.container.spark.sql_text import identifiers, mentioned, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Mapping[str, "DataFrame"]
"""{name: frame}."""


class LazyFrames(dict[str, "DataFrame"]):
    """{name: frame}; the frame of an adjunct store is made when it is first read."""

    def __init__(self, frames: Frames, stores: Mapping[str, Callable[[], DataFrame]]) -> None:
        """``stores``: {store: makes its frame}."""
        super().__init__(frames)
        self._stores = stores

    def __missing__(self, name: str) -> DataFrame:
        """Return the frame of the store; KeyError where there is none of that name."""
        if name not in self._stores:
            raise KeyError(name)
        self[name] = self._stores[name]()
        return self[name]


_ALL_FRAMES = (["frames"], ["tables"])
"""The one parameter of a function that gets all frames."""


@dataclass(frozen=True)
class Work:
    """``takes``: {name of a frame that ``call`` gets: its stream}.

    ``call``: makes the pipeline's frame of them. ``stores``: the adjunct stores whose frames it may
    ask for; it asks for those of ``needs`` at each call.
    """

    takes: Takes
    call: Callable[[Frames], DataFrame]
    stores: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def function_work(
    name: str, streams: Mapping[str, SystemStream], stores: Sequence[str] = ()
) -> Work:
    """Load the work of the function ``module:function``.

    * With one parameter, the function gets one frame with the rows of all streams.
    * If that parameter is ``frames`` or ``tables``, it gets {stream: frame}, one for each input;
      the frame of an adjunct store is made when it is first read.
    * With several, each is the name of an input or of an adjunct store; ``_`` stands for each
      character that a name in Python cannot have.

    Raises:
        ConfigError: the function cannot be imported, or has other parameters.
    """
    function = load_function(name)
    required = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}
    ]
    if required in _ALL_FRAMES:
        return Work(streams, function, tuple(stores))
    by_parameter = {as_parameter(table): table for table in (*streams, *stores)}
    if len(required) > 1 and by_parameter.keys() >= {*required}:
        taken = {parameter: by_parameter[parameter] for parameter in required}
        needs = tuple(table for table in taken.values() if table not in streams)
        if len(needs) == len(taken):
            raise _no_input(PIPELINE_CLASS, name, needs)
        return Work(
            {table: streams[table] for table in taken.values() if table in streams},
            lambda frames: function(**{p: frames[table] for p, table in taken.items()}),
            needs,
            needs,
        )
    _require_one(name, function, by_parameter)
    if required and by_parameter.get(required[0]) in stores:
        raise _no_input(PIPELINE_CLASS, name, required)
    return Work(WHOLE, lambda frames: function(frames[ALL]))


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


def sql_work(
    statement: str, streams: Mapping[str, SystemStream], stores: Sequence[str] = ()
) -> Work:
    """Return the work of a statement, whose tables are the streams, and ``input`` for all of them.

    ``stores``: the adjunct stores that may be tables too.

    Raises:
        ConfigError: it names adjunct stores alone.
    """
    needs = tuple(identifiers(statement, stores))
    named = mentioned(statement, dict.fromkeys([ALL, *streams]))
    if needs and not named:
        raise _no_input(keys.TASK_PIPELINE_SQL.name, statement, needs)
    named = named or [ALL]
    # One stream has one frame, under both names.
    is_one = len(streams) == 1
    takes: Takes = WHOLE if is_one else {name: streams.get(name) for name in named}
    views = {name: ALL if is_one else name for name in named}
    return Work(takes, _Statement(statement, views, needs).frame, needs, needs)


class _Statement:
    """A statement in Spark. ``views``: {table of an input: its frame}."""

    def __init__(self, statement: str, views: Mapping[str, str], stores: Sequence[str]) -> None:
        self._statement = statement
        self._views = {**views, **{store: store for store in stores}}
        self._is_query = False

    def frame(self, frames: Frames) -> DataFrame:
        session = next(iter(frames.values())).sparkSession
        for name, source in self._views.items():
            frames[source].createOrReplaceTempView(quoted(name))
        try:
            if not self._is_query:
                # It must be a query: Spark would run a command at once, such as DROP.
                state: Any = session._jsparkSession.sessionState()  # noqa: SLF001 - pyspark has no such call
                state.sqlParser().parseQuery(self._statement)
                self._is_query = True
            return session.sql(self._statement)
        finally:
            for name in self._views:
                session.catalog.dropTempView(quoted(name))


def as_parameter(name: str) -> str:
    """Return the name of a table as a parameter of a function in Python."""
    return re.sub(r"\W", "_", name)


def _no_input(key: str, value: str, stores: Sequence[str]) -> ConfigError:
    return ConfigError(
        key,
        value,
        f"it takes adjunct stores alone ({', '.join(stores)}), and a pipeline works on the rows of "
        "a micro-batch, which is an input's",
        "name an input too, as tasks do that read stores beside it",
    )
