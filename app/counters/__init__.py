"""What only ever grows and must outlive every process, counted in Postgres: ended jobs, their times, lost attempts."""
