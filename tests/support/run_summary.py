"""What tests hand to the summary of their run, as user properties of their reports."""

SEARCHED = "searched"
"""A line of a test: how much it has searched, and what it has found."""
BACK_END = "back-end"
"""The versions of what runs the containers of the test's cluster."""
