"""``scripts/bench restore``: one module for each section, and what they run."""
