"""A host is lost in mid-run, with standby containers and with mixed ones (``--fail-host``)."""
