-- Messages and summaries by an index each; a page needs no more of either than it ends with.
SELECT id, session_id, user_id, agent_id, position, role, name, ref, content, metadata, occurred_at, is_summary,
       compacted_into
FROM (
    (SELECT * FROM messages
     WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
       AND session_id = %(session_id)s AND NOT is_summary AND (%(include_compacted)s OR compacted_at IS NULL)
     ORDER BY position
     LIMIT %(offset)s + %(limit)s)
    UNION ALL
    (SELECT * FROM messages
     WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
       AND session_id = %(session_id)s AND is_summary AND (%(include_compacted)s OR compacted_at IS NULL)
     ORDER BY position
     LIMIT %(offset)s + %(limit)s)
) AS both_kinds
ORDER BY position, is_summary, id
LIMIT %(limit)s OFFSET %(offset)s
