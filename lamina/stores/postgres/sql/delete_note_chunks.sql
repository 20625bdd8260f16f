DELETE FROM note_chunks WHERE note_id = %(id)s
