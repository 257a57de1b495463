"""What Warpfold asks of the machine that it runs on: cores, installed packages, compiled code, measured rates."""
