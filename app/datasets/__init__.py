"""Uploaded arrays: kept once each by what they hold, in a folder that all processes of the service share."""
