"""Random jobs whose people change the model, command containers and end the job meanwhile."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from homeport.job_coordinator.model.placement import ANY_HOST, FORCE_RESTART_LAST_SEEN, LAST_SEEN
from tests.exhaustive.job import SETTINGS
from tests.exhaustive.people import People
from tests.property.cluster import Cluster, bound_of
from tests.property.test_large_world import LargeWorld

ENOUGH = 3
"""Commands that have no final answer; calm has no time for many more."""
COMMANDS = People(commands=(("any", "anywhere"),))
DESTINATIONS = ("h00", "h01", "h02", ANY_HOST, LAST_SEEN, FORCE_RESTART_LAST_SEEN)
PROCESSORS = st.lists(st.sampled_from("0123456"), min_size=6, max_size=6)


class ChangingWorld(LargeWorld):
    """A job whose tasks are dealt out again and again, and whose containers are moved."""

    standbys: dict[str, str]

    @initialize(
        host_count=st.integers(1, 4),
        homes=st.lists(
            st.sampled_from(["h00", "h01", "h03", "gone", None]), min_size=1, max_size=6
        ),
        pairs=st.integers(0, 2),
        affinity=st.booleans(),
        launch_retry_ms=st.sampled_from([0, 1000]),
    )
    def submit(
        self,
        host_count: int,
        homes: list[str | None],
        pairs: int,
        launch_retry_ms: int,
        *,
        affinity: bool,
    ) -> None:
        """A job is submitted, with state here and there; some of its containers have a standby."""
        hosts = tuple(f"h{i:02d}" for i in range(host_count))
        groups = {str(n): (f"{n}-0",) if n < pairs else () for n in range(len(homes))}
        self.standbys = {s: a for a, replicas in groups.items() for s in replicas}
        known = {str(n): home for n, home in enumerate(homes) if home}
        settings = replace(
            SETTINGS, host_affinity_enabled=affinity, launch_retry_ms=launch_retry_ms
        )
        self.cluster = Cluster(groups, hosts, settings, known, COMMANDS)
        self.world = self.cluster.deployed()

    @precondition(lambda self: self.cluster.has_people(self.world))
    @rule(processors=PROCESSORS)
    def change(self, processors: list[str]) -> None:
        """Each task is given to some processor, new ones among them; standbys stay with theirs."""
        dealt = {str(task): p for task, p in enumerate(processors)}
        kept = {s: s for s, active in self.standbys.items() if active in dealt.values()}
        self.world = self.cluster.changes(self.world, dealt | kept)

    @precondition(lambda self: self.cluster.has_people(self.world))
    @precondition(lambda self: len(self.world.stream.commands) < ENOUGH)
    @rule(
        processor=st.sampled_from(("0", "0-0", "1", "1-0", "2", "6")),
        to=st.sampled_from(DESTINATIONS),
    )
    def command(self, processor: str, to: str) -> None:
        """An operator commands something, possible or not."""
        self.world = self.cluster.commands(self.world, processor, to)

    @precondition(lambda self: self.cluster.has_people(self.world))
    @rule(very_rarely=st.integers(0, 20))
    def shut_down(self, very_rarely: int) -> None:
        """An operator ends the job."""
        if very_rarely == 20:
            self.world = self.cluster.is_shut_down(self.world)

    def teardown(self) -> None:
        """Calm: all that can be placed runs what the model says, and each command is answered."""
        if hasattr(self, "world"):
            mended = self.cluster.mended(self.world)
            self.cluster.rounds(mended, 3 * bound_of(self.cluster))


TestChangingWorld = ChangingWorld.TestCase
TestChangingWorld.settings = hypothesis_settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True, database=None
)
