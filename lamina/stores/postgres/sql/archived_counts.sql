SELECT file, count(*) AS notes
FROM archived_notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
GROUP BY file
