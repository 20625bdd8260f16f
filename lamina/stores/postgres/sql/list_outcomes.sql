SELECT id, run, succeeded, comment, agent_id, reported_at
FROM procedure_outcomes
WHERE procedure_id = %(procedure_id)s
ORDER BY reported_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s
