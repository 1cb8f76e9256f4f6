"""Addresses, network namespaces and their faults."""
