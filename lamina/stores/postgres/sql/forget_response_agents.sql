-- Agents without responses that have put none for a while: sub-agents come and go.
DELETE FROM response_agents a
WHERE a.agent <> '' AND a.put_at < %(idle_since)s
  AND (%(tenant)s::text IS NULL OR a.tenant = %(tenant)s)
  AND NOT EXISTS (
      SELECT 1 FROM responses r WHERE r.tenant = a.tenant AND r.workspace = a.workspace AND r.agent = a.agent
  )
