"""The main job on an embedded local cluster, from nothing to a checked result."""
