"""A real YARN cluster with Kafka on the loopback addresses of one machine, without root or Docker.

Standard library only: it runs before any virtual environment exists.
"""
