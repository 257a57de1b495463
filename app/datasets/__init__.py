"""Uploaded arrays: each content is kept once, in a folder that all processes of the service share."""
