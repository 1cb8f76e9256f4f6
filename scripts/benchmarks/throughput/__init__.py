"""``scripts/bench throughput``: the same work by several stream processors, results checked."""
