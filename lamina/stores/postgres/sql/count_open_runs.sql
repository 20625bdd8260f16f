SELECT count(*) AS runs FROM job_runs WHERE tenant = %(tenant)s AND state IN ('queued', 'running', 'undoing')
