-- Whatever in a namespace still has vectors of some generations, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
(SELECT m.id FROM messages m
 WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
   AND (%(after)s::uuid IS NULL OR m.id > %(after)s)
   AND (EXISTS (SELECT FROM message_chunks c WHERE c.message_id = m.id AND c.generation = ANY(%(generations)s) OFFSET 0)
        OR EXISTS (SELECT FROM compacted_chunks c WHERE c.message_id = m.id AND c.generation = ANY(%(generations)s) OFFSET 0))
 ORDER BY m.id LIMIT %(limit)s)
UNION ALL
(SELECT n.id FROM notes n
 WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
   AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
   AND EXISTS (SELECT FROM note_chunks c WHERE c.note_id = n.id AND c.generation = ANY(%(generations)s) OFFSET 0)
 ORDER BY n.id LIMIT %(limit)s)
UNION ALL
(SELECT p.id FROM passages p
 WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
   AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
   AND EXISTS (SELECT FROM passage_chunks c WHERE c.passage_id = p.id AND c.generation = ANY(%(generations)s) OFFSET 0)
 ORDER BY p.id LIMIT %(limit)s)
UNION ALL
(SELECT e.id FROM entities e
 WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
   AND (%(after)s::uuid IS NULL OR e.id > %(after)s)
   AND EXISTS (SELECT FROM entity_embeddings o WHERE o.entity_id = e.id AND o.generation = ANY(%(generations)s) OFFSET 0)
 ORDER BY e.id LIMIT %(limit)s)
UNION ALL
(SELECT p.id FROM procedures p
 WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s AND p.deleted_at IS NULL
   AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
   AND EXISTS (SELECT FROM procedure_embeddings o WHERE o.procedure_id = p.id AND o.generation = ANY(%(generations)s) OFFSET 0)
 ORDER BY p.id LIMIT %(limit)s)
ORDER BY id
LIMIT %(limit)s
