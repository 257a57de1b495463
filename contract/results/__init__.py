"""The results of each kind of job."""
