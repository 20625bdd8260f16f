-- What notes are linked to, and which notes are linked to them.
SELECT from_id, to_id, kind, source, strength, seen_at
FROM memory_links
WHERE from_id = ANY(%(ids)s) OR (to_id = ANY(%(ids)s) AND kind = 'similar' AND from_tier = 2)
ORDER BY from_id, to_id, kind
