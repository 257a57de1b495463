"""Elements of given ranks on a GPU, of whole arrays and of many rows."""
