"""Ranks on a CPU: threads of one process, or processes, which add up through memory that they share."""
