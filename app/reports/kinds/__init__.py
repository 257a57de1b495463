"""The tables and charts of each kind of result, and their registry. Importing any of these modules loads Altair."""
