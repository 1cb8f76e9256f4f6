"""The status of a job with its types: what both cluster managers show, and all tools read."""
