"""Sends webhooks about ended jobs, by a thread of the dispatcher's process for which the dispatcher never waits."""
