"""What a child does for each kind of job, one module a kind."""
