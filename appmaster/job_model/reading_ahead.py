"""When tasks of mixed containers may move: once their next containers have read their state.

PURE. A planned change of owners is preceded by versions of the JobModel that change no owner
(``read_ahead``). The change comes once each task that moves has a standby at its destination which
lacks at most ``cluster-manager.warm-move.max.records``. It comes without that if nothing has got
nearer for ``cluster-manager.command.timeout.ms``: as for an operator's move, a restore may take
hours, and a container that finds no host must not keep the others from their tasks.

What is under way is known to its driver alone. These versions carry the configuration from before,
so that a later driver or attempt finds the change due, and makes it with what is read by then.
"""

from collections.abc import Mapping
from typing import Any, Self

from homeport.appmaster.job_model.live_configuration import has_state
from homeport.appmaster.job_model.mixed_roles import Quiet
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.sections import StandbyConfig
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.grouper.read_ahead import Goal, left_to_read, with_read_ahead
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import JobModel

Lags = Mapping[TaskName, int]
"""{standby: records that it lacks}, by the last reports."""


class ReadingAhead:
    """One change, which gives the job this configuration, while its tasks' state is read ahead."""

    def __init__(self, config: Config, goal: Goal, now_s: float) -> None:
        self.config = config
        self.goal = goal
        self.began_s = self._nearer_s = now_s
        self.left: dict[TaskName, int | None] = {}
        """{task that is waited for: what is left to read}, at the last look; None: not known."""
        self._least: tuple[int, int] | None = None
        self._quiet = Quiet()
        self._made: JobModel | None = None

    @classmethod
    def of(
        cls, before: JobModel, after: JobModel, places: Places, lags: Lags, now_s: float
    ) -> Self | None:
        """Return the change from one model to the other; None: it has nothing to wait for."""
        if not (StandbyConfig.of(before.config).is_mixed and has_state(before.config)):
            return None
        found = cls(after.config, Goal.between(before, after), now_s)
        return None if found.is_over(before, places, lags, now_s) else found

    def is_over(self, model: JobModel, places: Places, lags: Lags, now_s: float) -> bool:
        """Look at what is left to read; return whether the tasks move now."""
        most = keys.WARM_MOVE_MAX_RECORDS.read(model.config)
        left = left_to_read(model, self.goal, places, lags)
        self.left = {t: lag for t, lag in left.items() if lag is None or lag > most}
        known = [lag for lag in self.left.values() if lag is not None]
        now = len(self.left) - len(known), sum(known)
        if self._least is None or now < self._least:
            self._least, self._nearer_s = now, now_s
        limit_s = keys.COMMAND_TIMEOUT_MS.read(model.config) / 1000
        return not self.left or now_s - self._nearer_s >= limit_s

    def version(self, model: JobModel, places: Places, now_s: float) -> JobModel | None:
        """Return the version that must follow ``model`` first; None: none is due.

        Further ones wait until the containers stay where they are, or all that gain have a host.
        """
        is_first = self._quiet.is_first
        is_news = self._quiet.look(places, now_s)
        if model is self._made and not is_news:
            return None
        is_complete = all(p in places.hosts for p in self.goal.to.values())
        if not (is_first or is_complete or self._quiet.is_over(now_s)):
            return None
        after = self.over(model, places)
        return None if after.containers == model.containers else after

    def done(self, version: JobModel, places: Places) -> None:
        """Note that the version for these places is in force."""
        self._made = version
        self._quiet.done(places)

    def over(self, model: JobModel, places: Places) -> JobModel:
        """Return the model with what is read ahead."""
        return with_read_ahead(model, self.goal, places)

    @property
    def why(self) -> str:
        """Return the reason of such a version, for people."""
        return f"the state of {len(self.goal.to)} tasks that will move is read ahead"

    def facts(self, now_s: float) -> dict[str, Any]:
        """Return what the history keeps of it: ``late`` tasks moved before they were near."""
        waited_ms = round((now_s - self.began_s) * 1000)
        return {"tasks": sorted(self.goal.to), "late": sorted(self.left), "waited_ms": waited_ms}


def taken_back(model: JobModel, places: Places) -> JobModel:
    """Return the model without standbys that read ahead: no task will move."""
    return with_read_ahead(model, Goal.none(model), places)
