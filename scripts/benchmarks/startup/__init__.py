"""``scripts/bench startup``: one module for each section, and what they run."""
