"""Reductions on the CPU: `strategies` holds the strategies and `folds` their arithmetic piece by piece, `stream` deals
pieces to threads, and `accumulator` adds exactly, in the compiled loops of `windows`."""
