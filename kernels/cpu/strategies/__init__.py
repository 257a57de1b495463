"""The strategies on a CPU: `rows` has what the catalogue says of them, each other file but `registry` holds one."""
