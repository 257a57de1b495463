"""Users, tokens, quotas and draining, for admins."""
