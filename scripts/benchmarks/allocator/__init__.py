"""``scripts/bench allocator``: one module for each section, and what they run."""
