INSERT INTO job_runs (id, job, tenant, workspace, namespace, state, is_dry_run, is_forced, requested_by, moment)
VALUES (%(id)s, %(job)s, %(tenant)s, %(workspace)s, %(namespace)s, 'queued', %(is_dry_run)s, %(is_forced)s,
        %(requested_by)s, %(moment)s)
