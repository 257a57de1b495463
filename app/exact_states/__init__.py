"""Exact states over the wire: merging them."""
