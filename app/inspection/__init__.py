"""Inspects files before a job reads them, in processes that live for one inspection and have little of the machine."""
