"""What a job's pipeline is to Spark: a function of the job's own, or a statement of SQL.

Neither is called here, nor is pyspark imported but by what a call gets.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream
from homeport.container.classes import PIPELINE_CLASS, load_function
from homeport.container.spark.inputs import ALL, WHOLE, Takes
from homeport.container.spark.sql_text import identifiers, mentioned, quoted, with_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frames = Mapping[str, "DataFrame"]
"""{name: frame}."""


class Tables(dict[str, "DataFrame"]):
    """{name: frame}; an adjunct store's is made when it is first read."""

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
"""The one parameter of a function that gets all of them."""
_PLAIN = frozenset({"Project", "Filter", "SubqueryAlias", "View", "Generate", "Window"})
"""Steps of a plan, each row of which is made of one row of what is below."""
_SPARK_ERRORS = "pyspark.errors."


class Work(Protocol):
    """``takes``: the frames that it is called with.

    ``stores``: the adjunct stores whose frames it may ask for; of ``needs`` it surely does.
    """

    stores: tuple[str, ...]
    needs: tuple[str, ...]

    @property
    def takes(self) -> Takes:
        """Return {name of a frame: its stream}."""

    def __call__(self, frames: Frames) -> DataFrame:
        """Return what the pipeline makes of them."""


class FunctionWork:
    """A function of one frame with all rows, of ``frames``, or of frames by the streams' names."""

    def __init__(
        self,
        takes: Takes,
        call: Callable[[Frames], DataFrame],
        stores: Sequence[str] = (),
        needs: Sequence[str] = (),
    ) -> None:
        """``call``: the function, given what it takes; the others: as of ``Work``."""
        self.takes = takes
        self.stores, self.needs = tuple(stores), tuple(needs)
        self._call = call

    def __call__(self, frames: Frames) -> DataFrame:
        """Return what the function returns."""
        return self._call(frames)

    @staticmethod
    def load(
        name: str, streams: Mapping[str, SystemStream], stores: Sequence[str] = ()
    ) -> FunctionWork:
        """Load the work of the function ``module:function``.

        * It has one parameter: it gets one frame with the rows of all streams.
        * That one is called ``frames`` or ``tables``: it gets {stream: frame}, one for each input;
          an adjunct store's is made when it is first read.
        * It has several: each is the name of an input or of an adjunct store, with ``_`` for what
          no name in Python has.

        Raises:
            ConfigError: it cannot be imported, or has other parameters.
        """
        function = load_function(name)
        required = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}
        ]
        if required in _ALL_FRAMES:
            return FunctionWork(streams, function, stores)
        by_parameter = {as_parameter(table): table for table in (*streams, *stores)}
        if len(required) > 1 and by_parameter.keys() >= {*required}:
            taken = {parameter: by_parameter[parameter] for parameter in required}
            needs = [table for table in taken.values() if table not in streams]
            if len(needs) == len(taken):
                raise _no_input(PIPELINE_CLASS, name, needs)
            return FunctionWork(
                {table: streams[table] for table in taken.values() if table in streams},
                lambda frames: function(**{p: frames[table] for p, table in taken.items()}),
                needs,
                needs,
            )
        _require_one(name, function, by_parameter)
        if required and by_parameter.get(required[0]) in stores:
            raise _no_input(PIPELINE_CLASS, name, required)
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
        stores: the adjunct stores that may be tables too.
        keeps: columns of the input that the rows are to have. Where the statement takes rows as
            they come and leaves one out it is added.
    """

    def __init__(
        self,
        statement: str,
        streams: Mapping[str, SystemStream],
        keeps: Sequence[str],
        stores: Sequence[str] = (),
    ) -> None:
        """Spark has not seen it yet; ConfigError where it names adjunct stores alone."""
        self._statement = statement
        self._keeps = keeps
        self._settled: str | None = None
        self.needs = self.stores = tuple(identifiers(statement, stores))
        named = mentioned(statement, dict.fromkeys([ALL, *streams]))
        if self.needs and not named:
            raise _no_input(keys.TASK_PIPELINE_SQL.name, statement, self.needs)
        named = named or [ALL]
        # Of one stream there is one frame, which goes by both names.
        is_one = len(streams) == 1
        self.takes: Takes = WHOLE if is_one else {name: streams.get(name) for name in named}
        self._views = {name: ALL if is_one else name for name in named}

    def __call__(self, frames: Frames) -> DataFrame:
        """Return the statement's frame; the first call settles which columns are added."""
        with self._viewed(frames) as session:
            if self._settled is None:
                self._settled = self._with_kept(session)
            return session.sql(self._settled)

    @contextmanager
    def _viewed(self, frames: Frames) -> Iterator[SparkSession]:
        session = next(iter(frames.values())).sparkSession
        views = self._views | {store: store for store in self.stores}
        for name, source in views.items():
            frames[source].createOrReplaceTempView(quoted(name))
        try:
            yield session
        finally:
            for name in views:
                session.catalog.dropTempView(quoted(name))

    def _with_kept(self, session: SparkSession) -> str:
        # It must be a query: Spark would run a command at once, such as DROP.
        state: Any = session._jsparkSession.sessionState()  # noqa: SLF001 - pyspark has no such call
        state.sqlParser().parseQuery(self._statement)
        frame = session.sql(self._statement)
        missing = [name for name in self._keeps if name not in frame.columns]
        is_plain = missing and _is_plain(frame, self.stores)
        longer = with_columns(self._statement, missing) if is_plain else None
        if longer is None:
            return self._statement
        try:
            found = session.sql(longer)
        except Exception as error:  # pyspark is imported by no module: its errors go by name
            if not type(error).__module__.startswith(_SPARK_ERRORS):
                raise
            return self._statement  # a column is not there to be added, or stands for two
        is_same = found.columns == [*missing, *frame.columns] and _is_plain(found, self.stores)
        return longer if is_same else self._statement


def _is_plain(frame: DataFrame, stores: Sequence[str]) -> bool:
    """Return whether each row is made of one row of the input, and of what stores have for it."""
    plan: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - pyspark shows no plan
    while True:
        if plan.nodeName() == "Join" and _is_store(plan.right(), stores):
            plan = plan.left()
        elif plan.children().size() == 1 and plan.nodeName() in _PLAIN:
            plan = plan.children().head()
        else:
            return bool(plan.children().isEmpty() and not plan.nodeName().startswith("CTE"))


def _is_store(plan: Any, stores: Sequence[str]) -> bool:  # noqa: ANN401 - an object of Java
    names = {store.lower() for store in stores}
    while plan.nodeName() == "SubqueryAlias":
        if plan.alias().lower() in names:
            return True
        plan = plan.children().head()
    return False


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
