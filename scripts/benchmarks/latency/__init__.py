"""``scripts/bench latency``: from a record's send until a reader of committed records has it."""
