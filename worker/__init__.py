"""The processes that run jobs: the dispatcher, the worker of each slot with its warm child, and `serve`, which starts
them all."""
