SELECT n.id, c.generation, c.chunk, substr(n.content, c.text_start + 1, c.text_end - c.text_start) AS text
FROM notes n
JOIN note_chunks c ON c.note_id = n.id
WHERE n.id = ANY(%(ids)s)
ORDER BY n.id, c.chunk
