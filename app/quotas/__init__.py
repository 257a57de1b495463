"""How much one user may run, queue and use."""
