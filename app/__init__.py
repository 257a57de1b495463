"""The api: what HTTP says, what Postgres holds, what people see.

A folder a subject, each with the same files where it needs them: `endpoints` (HTTP) → `service` (one request's work) →
`repository` (SQL) → `models` (tables), and `views` (what is answered). `main` puts them together, `config` has the
settings.
"""
