"""Which dispatcher leads: a lease in Postgres that its holder renews."""
