"""What a job takes that has nothing to do."""
