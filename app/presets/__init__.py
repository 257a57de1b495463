"""Presets over HTTP."""
