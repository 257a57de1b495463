"""What a request may say and what a result says: the service, the workers and the client read it, and none owns it."""
