"""Judges a run by its history alone: facts that launchers, containers and drivers wrote down.

Standard library only, and none of the project's code: what is judged must not judge itself.
"""
