"""``scripts/bench commit``: one module for each section, and what they run."""
