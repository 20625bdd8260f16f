INSERT INTO procedure_outcomes (id, procedure_id, run, succeeded, comment, agent_id, reported_at)
VALUES (%(id)s, %(procedure_id)s, %(run)s, %(succeeded)s, %(comment)s, %(agent_id)s, %(now)s)
ON CONFLICT (procedure_id, run) DO NOTHING
