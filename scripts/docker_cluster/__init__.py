"""The mini-cluster in containers: engine, image, start, faults. The commands are in docker/."""
