"""Jobs from their spec to their end.

`…_spec` is what each kind is asked to do; `service` and `endpoints` are what people do with jobs, `outbox` and `leases`
what the dispatcher and the workers do; `states` and `families` say what becomes of them.
"""
