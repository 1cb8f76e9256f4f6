"""A job in one Python file: ``from homeport import Job``."""
