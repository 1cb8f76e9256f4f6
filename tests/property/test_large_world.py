"""Random jobs on random clusters of up to thirty hosts: random schedules, then calm."""

from __future__ import annotations

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.exhaustive.things import World
from tests.property.cluster import Cluster, bound_of

REPLICAS = 2
NUMBERS = st.lists(st.integers(0, 1000), min_size=6, max_size=6)


class LargeWorld(RuleBasedStateMachine):
    """A job with standbys; every world on the way is judged, and calm heals the last one."""

    cluster: Cluster
    world: World

    @initialize(
        host_count=st.integers(1, 30),
        groups=st.lists(st.integers(0, REPLICAS), min_size=1, max_size=6),
    )
    def submit(self, host_count: int, groups: list[int]) -> None:
        """A job is submitted."""
        hosts = tuple(f"h{i:02d}" for i in range(host_count))
        replicas = {str(a): tuple(f"{a}-{i}" for i in range(n)) for a, n in enumerate(groups)}
        self.cluster = Cluster(replicas, hosts)
        self.world = self.cluster.deployed()

    @rule(numbers=NUMBERS, count=st.integers(1, 10))
    def go_on(self, numbers: list[int], count: int) -> None:
        """Some things happen by themselves."""
        for number in numbers[:count]:
            self.world = self.cluster.goes_on(self.world, number.__mod__)

    @rule(numbers=NUMBERS)
    def suffer(self, numbers: list[int]) -> None:
        """Something goes wrong."""
        left = iter(numbers)
        self.world = self.cluster.suffers(self.world, lambda n: next(left) % n)

    @precondition(lambda self: self.world.late or len(self.world.rm) < len(self.cluster.hosts))
    @rule(number=st.integers(0, 1000))
    def be_relieved(self, number: int) -> None:
        """Something that was away is back."""
        self.world = self.cluster.is_relieved(self.world, number.__mod__)

    def teardown(self) -> None:
        """Calm: within the bound all that can be placed runs, and nothing is left over."""
        if hasattr(self, "world"):
            mended = self.cluster.mended(self.world)
            self.cluster.rounds(mended, bound_of(self.cluster))


TestLargeWorld = LargeWorld.TestCase
TestLargeWorld.settings = hypothesis_settings(
    max_examples=40, stateful_step_count=25, deadline=None, derandomize=True, database=None
)
