"""The strategies on a CPU: `rows` has what the catalogue says of them, and each other file holds one."""
