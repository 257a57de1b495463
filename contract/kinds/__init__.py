"""A file for each kind of job: what it may be asked, and what it answers."""
