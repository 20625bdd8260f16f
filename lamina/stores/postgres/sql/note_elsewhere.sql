-- Where a note is that is not there.
SELECT merged_into, false AS is_archived FROM notes
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NOT NULL AND merged_into IS NOT NULL
UNION ALL
SELECT NULL, true FROM archived_notes WHERE id = %(id)s AND tenant = %(tenant)s
