"""The flights job in a life of its own: it is changed while it runs, and ends (``--living``)."""
