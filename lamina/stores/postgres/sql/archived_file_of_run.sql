SELECT file FROM archived_notes
WHERE run_id = %(run_id)s AND file <> ALL(%(but)s::text[])
ORDER BY file
LIMIT 1
