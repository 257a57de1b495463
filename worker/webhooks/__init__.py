"""Tells receivers that jobs have ended: a thread of the dispatcher's process, for which the dispatcher never waits."""
