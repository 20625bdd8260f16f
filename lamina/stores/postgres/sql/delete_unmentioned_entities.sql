-- The entities are locked (lock_entities), or one that was mentioned meanwhile would go. Neither a mention by a note that
-- is hidden nor an edge that nobody told keeps one; they go with it. What was merged is still said by its survivor. One
-- mention is looked for rather than joined, or an entity of many would be joined with all notes.
WITH gone AS (
    DELETE FROM entities n
    WHERE n.id = ANY(%(ids)s) AND NOT n.is_asserted
      AND (SELECT l.from_id FROM memory_links l LEFT JOIN notes m ON m.id = l.from_id
           WHERE l.to_id = n.id AND (m.deleted_at IS NULL OR m.merged_into IS NOT NULL) LIMIT 1) IS NULL
      AND NOT EXISTS (
          SELECT FROM edges e JOIN edge_evidence v ON v.edge_id = e.id
          WHERE (e.from_id = n.id OR e.to_id = n.id)
            AND NOT (v.source = 'job:consolidation' AND v.memory_id IS NULL AND v.user_id IS NULL))
    RETURNING n.id
), unlinked AS (
    DELETE FROM memory_links l USING gone WHERE l.to_id = gone.id
)
SELECT id FROM gone
