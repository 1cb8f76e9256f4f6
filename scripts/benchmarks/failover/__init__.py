"""``scripts/bench failover``: one module for each section, and what they run."""
