"""Exact sums inside of other people's engines: each file gives one engine the reductions of this house."""
