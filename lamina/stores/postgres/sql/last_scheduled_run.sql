SELECT max(created_at) AS at FROM job_runs WHERE job = %(job)s AND requested_by = %(requested_by)s
