"""A real YARN cluster with Kafka on the loopback addresses of one machine, without root or Docker.

As root, each daemon may have a network of its own instead (``net``).
"""
