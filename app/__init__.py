"""The api: what HTTP says, what Postgres holds, what people see.

A folder a subject, each with the same files where it needs them: `endpoints` (HTTP) → `service` (one request's work) →
`repository` (SQL), and `views` (what is answered). What all routes share is in `http`, all tables are in `tables`;
`main` puts the parts together, and `config` has the settings.
"""
