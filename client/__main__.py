"""`python -m client` is `warpfold`."""

from client.cli import main

main()
