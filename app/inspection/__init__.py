"""Looks into files before a job reads them, in processes that live for one look each and have little of the machine."""
