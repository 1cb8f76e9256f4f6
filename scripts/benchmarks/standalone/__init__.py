"""scripts/bench standalone."""
