"""Users, tokens and sessions: they tell who sends a request, and what that user may do."""
