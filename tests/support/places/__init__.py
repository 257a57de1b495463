"""Servers that tests of places read from."""
