SELECT tenant, workspace, namespace FROM job_runs WHERE id = %(id)s
