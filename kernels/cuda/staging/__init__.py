"""The elements of a source on the GPU: copied in pieces, generated there, widened, their NaNs counted."""
