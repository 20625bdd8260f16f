UPDATE job_runs SET state = %(state)s WHERE id = %(id)s AND state = ANY(%(states)s) RETURNING id
