"""Who asks, and what they may: users, tokens, sessions."""
