SELECT note_id AS id, chunk, text_start, text_end, generation, embedding
FROM note_chunks
WHERE note_id = ANY(%(ids)s)
ORDER BY note_id, generation, chunk
