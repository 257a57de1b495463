"""How a source reads: pieces in order, sections by several threads, files in memory, checksums beside the reduction."""
