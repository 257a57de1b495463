"""Exact reductions inside other engines. Each module gives one engine the reductions of Warpfold."""
