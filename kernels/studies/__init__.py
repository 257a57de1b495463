"""What all kinds of studies share: how a point ends, what is prepared before anything is timed, and swept shapes."""
