"""``scripts/bench coordinator``: one module for each section, and what they run."""
