"""``scripts/bench store``: one module for each section, and what they run."""
