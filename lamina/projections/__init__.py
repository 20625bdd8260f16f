"""Projections of Postgres: fed, audited, built beside and switched."""
