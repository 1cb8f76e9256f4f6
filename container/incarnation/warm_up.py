"""GettingReady: what a process of the stream container's program does while it has no permit.

It imports. If a key asks for it, or a permit is near, it also starts a Spark for the job's
pipeline, from the job's package and the configuration of the AM or the processor. It touches
nothing else of the job. The permit may come with another configuration: then the Spark is of no use
and ends. This module imports little, since it is imported before the signal handler stands.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from homeport.container.host.lease_memory import SpareKind

if TYPE_CHECKING:
    from homeport.container.host.lease_memory import LeaseMemory
    from homeport.container.spark.prepared import PipelineSettings
    from homeport.container.spark.session import LocalSpark

_LOG = logging.getLogger(__name__)

_NICENESS = 10
"""Of the imports of a process that may wait for long; if a permit is near, its start needs them."""
_ROUNDS = 5
"""How often a JVM that has time is exercised: the first rounds are the slow ones."""
_LOOK_S = 0.5
_NEAR_S = 0.05


class GettingReady:
    """Makes a process ready: ``begin``, then ``take`` or ``stop`` for each incarnation.

    An incarnation without tasks may ``begin`` again. Thread-safe. ``launcher``: its ``is_ready``
    shows that all is done, and no Spark has died since.
    """

    def __init__(self, launcher: LeaseMemory) -> None:
        self._launcher = launcher
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._begun = SpareKind.NONE
        self._spark: LocalSpark | None = None
        self._settings: PipelineSettings | None = None

    def begin(self, kind: SpareKind) -> None:
        """Do the work of ``kind`` in threads, unless it has begun or a Spark is here."""
        with self._lock:
            if kind <= self._begun or self._spark is not None:
                return
            self._begun, self._over = kind, threading.Event()
            over = self._over
        imports = threading.Thread(target=self._import, args=[kind], name="imports", daemon=True)
        imports.start()
        if kind in {SpareKind.SPARK, SpareKind.WARM}:
            # By a thread of its own: a JVM that began nice would stay so for good.
            threading.Thread(
                target=self._warm_up, args=[kind, imports, over], name="warm-up", daemon=True
            ).start()

    def take(self, wanted: PipelineSettings) -> LocalSpark | None:
        """Hand over the Spark, once; None: none is of use, and none is made until ``begin``."""
        with self._lock:
            self._end_work()
            spark, settings = self._spark, self._settings
            if spark is not None and settings is not None:
                if settings.serves(wanted) and spark.is_sound():
                    self._spark = None
                    return spark
                _LOG.info("the Spark that was made ready is of no use")
        self.stop()
        return None

    def keep(self, settings: PipelineSettings, spark: LocalSpark) -> None:
        """Keep the Spark, which has done its work, for the next incarnation's ``take``."""
        with self._lock:
            self._spark, self._settings = spark, settings

    def stop(self) -> None:
        """End the Spark, if there is one; none is made until ``begin``."""
        with self._lock:
            self._end_work()
            spark, self._spark = self._spark, None
        if spark is not None:
            spark.stop()

    def _end_work(self) -> None:
        self._over.set()
        self._begun = min(self._begun, SpareKind.PLAIN)  # what is imported stays so

    def _import(self, kind: SpareKind) -> None:
        if not self._launcher.is_permit_near:
            os.nice(_NICENESS)  # of this thread alone: it gives way to all that runs on the host
        _import_all(kind)
        if kind is not SpareKind.WARM:
            self._launcher.is_ready = True

    def _warm_up(self, kind: SpareKind, imports: threading.Thread, over: threading.Event) -> None:
        imports.join()
        if kind is SpareKind.WARM:
            spark = self._start_spark(over, _ROUNDS)
            while spark is not None and not over.wait(_LOOK_S):
                self._launcher.is_ready = spark.is_ready()
                if (fault := spark.fault()) is not None:
                    self._fail(fault)
                    return
            return
        while not self._launcher.is_permit_near:
            if over.wait(_NEAR_S):
                return
        self._start_spark(over)

    def _start_spark(self, over: threading.Event, rounds: int = 0) -> LocalSpark | None:
        from homeport.config.config import Config  # noqa: PLC0415 - little is imported at first
        from homeport.config.errors import HomeportError  # noqa: PLC0415 - as above
        from homeport.container.incarnation import environment  # noqa: PLC0415 - as above
        from homeport.container.spark.prepared import PipelineSettings, start_pipeline  # noqa: PLC0415 - as above

        try:
            config, work_dir = environment.config_given(os.environ), Path.cwd()
            if config is None:
                config = Config(environment.am_client(os.environ, work_dir).config())
            folder = environment.folder_of(os.environ, work_dir)
            settings = PipelineSettings.of(config, folder / f"spark-spare-{os.getpid()}")
            with self._lock:
                if settings is not None and self._spark is None and not over.is_set():
                    self._spark, self._settings = start_pipeline(settings, rounds), settings
                return self._spark
        except HomeportError as error:
            # A start here reports it too, if it still is so then.
            self._fail(error)
            return None

    def _fail(self, error: BaseException) -> None:
        _LOG.warning("no Spark is made ready: %s", " ".join(str(error).split()))
        self._launcher.has_failed = True


def _import_all(kind: SpareKind) -> None:
    importlib.import_module("homeport.container.incarnation.stream_container")
    pandas = importlib.import_module("homeport.container.host.late_pandas")
    if kind is SpareKind.WARM:
        pandas.with_pandas()
    else:
        pandas.without_pandas()  # a start imports it beside the JVM's own
    if kind in {SpareKind.SPARK, SpareKind.WARM}:
        with importlib.import_module("homeport.job_coordinator.user_code").IMPORTING:
            importlib.import_module("pyspark.sql")
    gc.collect()
    gc.freeze()  # the start need not look at all this again
