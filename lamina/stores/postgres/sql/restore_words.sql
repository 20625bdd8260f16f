UPDATE note_chunks c SET tsv = to_tsvector('lamina', w.words)
FROM unnest(%(ids)s::uuid[], %(generations)s::smallint[], %(chunks)s::integer[], %(words)s::text[])
     AS w (id, generation, chunk, words)
WHERE c.note_id = w.id AND c.generation = w.generation AND c.chunk = w.chunk
