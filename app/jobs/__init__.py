"""Jobs from their spec to their end.

The api: `endpoints` takes a request, `service` does its work, `accept` stores the job, `store` reads jobs, `views` and
`events` say what is answered. The dispatcher: `turns` chooses who is next, `queue` has what was handed over, `presets`
bring jobs with children up to date. The workers: `workers` report themselves, and run attempts under `leases`. Every
change of a job's row goes through `transitions`.
"""
