"""Stored results: their files, whose they are, and how they are downloaded."""
