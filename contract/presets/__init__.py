"""Every experiment of the documents that Warpfold comes from, as a list of jobs: `specs/` holds one file a preset,
`published/` what the documents say came out."""
