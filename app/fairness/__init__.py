"""No user and no address takes the api from the others: how often each may ask, and whose turn it is."""
