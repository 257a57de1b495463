"""The form for a new job, made from the JSON schema of job specs and the catalogues.

`schema` says which fields there are, `reading` turns what was typed into a spec and a spec into what would be typed,
`equivalents` says the same in curl and Python. A kind of job that is new needs no line here.
"""
