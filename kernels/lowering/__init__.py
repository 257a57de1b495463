"""What stored numbers stand for: nulls, decimals, instants, packed, complex and long numbers. Each is made plain before
it is reduced, and put back on the values."""
