"""What is derived from Postgres: applied, compared, built beside and switched."""
