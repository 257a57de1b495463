"""What each document's figures are compared with, table by table, and what there is to say about it."""
