"""The form for a new job, made from the JSON schema of job specs and the catalogues.

`schema` says which fields there are, `reading` turns typed texts into a spec and a spec into texts, and `submission`
reads and checks a form that was sent. A new kind of job needs no line here.
"""
