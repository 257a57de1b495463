"""Stored results: their files, their owners, and their downloads."""
