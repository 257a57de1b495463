"""`warpfold doctor`: what a process of the service would find on this machine, and what to do about what is broken."""
