"""``scripts/bench adjunct``: one module for each section, and the stores that they fill."""
