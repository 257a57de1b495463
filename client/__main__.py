"""`python -m warpfold.client` is `warpfold`."""

from warpfold.client.cli import main

main()
