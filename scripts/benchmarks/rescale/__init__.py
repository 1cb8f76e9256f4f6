"""``scripts/bench rescale``: one module for each section, and what they run."""
