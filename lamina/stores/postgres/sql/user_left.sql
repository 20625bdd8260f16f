-- What there is of a user, looked for again.
SELECT (SELECT count(*) FROM notes WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS notes,
       (SELECT count(DISTINCT s.note_id) FROM note_sources s JOIN notes n ON n.id = s.source_id
        WHERE n.tenant = %(tenant)s AND n.user_id = %(user_id)s) AS derived,
       (SELECT count(*) FROM messages WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS messages,
       (SELECT count(*) FROM documents WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS documents,
       (SELECT count(*) FROM profiles WHERE tenant = %(tenant)s AND user_id = %(user_id)s)
       + (SELECT count(*) FROM profile_versions WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS profiles,
       (SELECT count(*) FROM memory_links WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS links,
       (SELECT count(*) FROM edge_evidence v JOIN edges e ON e.id = v.edge_id
        WHERE e.tenant = %(tenant)s AND v.user_id = %(user_id)s) AS evidence,
       (SELECT count(*) FROM responses WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS responses,
       (SELECT count(*) FROM archived_notes WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS archived
