"""Tables and charts of each kind of result that has many points; other kinds are told in a few lines."""
