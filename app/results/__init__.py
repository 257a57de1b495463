"""What jobs come to: a file for the result of each kind, of which `result` is the union.

Across all jobs: the table of measurements with its queries, exports and comparisons.
"""
