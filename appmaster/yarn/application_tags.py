"""What marks a job's application on YARN, and where its page is."""

from __future__ import annotations

APPLICATION_TAG = "homeport"
JOB_TAG_PREFIX = "homeport-job-"
HTTPS_TAG = "homeport-https"
"""Of a job whose job coordinator serves https, which YARN's proxy does not reach."""
PAGE = "homeport"
"""The name of the job coordinator below ``pages/`` of the application's page."""
