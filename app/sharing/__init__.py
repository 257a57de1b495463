"""Sharing by the owner's word: with everyone, or with named users."""
