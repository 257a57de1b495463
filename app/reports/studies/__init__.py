"""The comparison of each document's figures with ours, table by table, and the findings."""
