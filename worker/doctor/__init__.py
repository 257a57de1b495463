"""`warpfold doctor` checks what the service needs of this machine, and says how to mend what is broken."""
