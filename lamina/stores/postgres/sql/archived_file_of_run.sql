SELECT file FROM archived_notes WHERE run_id = %(run_id)s ORDER BY file LIMIT 1
