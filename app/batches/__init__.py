"""Batches: many jobs by one request.

`preparing` reads and checks a request's specs, some at a time in a process apart; `accept` stores them in one
transaction; `repository` reads batches and their results; `service` does the work of the routes in `endpoints`, whose
answers are in `views` and `results`. The jobs of a batch are jobs like all others.
"""
