UPDATE procedures
SET successes = %(successes)s, failures = %(failures)s, strength = %(strength)s, last_used_at = %(now)s
WHERE id = %(id)s
RETURNING id, workspace, namespace, agent_id, trigger, action, tags, metadata, source, strength, successes, failures,
       created_at, updated_at, last_used_at
