"""Fair shares of the api: how often each user and address may ask, and whose turn it is."""
