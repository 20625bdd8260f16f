SELECT merged_into FROM notes
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NOT NULL AND merged_into IS NOT NULL
