-- Texts with emoji or other symbols, and those without letters and digits, whose words an earlier release left out. The
-- service indexes them anew in the background. Beside what is certainly none of them, all count.
CREATE FUNCTION has_symbols(content text) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN content ~ '[^\u0001-\u00A1\u00AA\u00AB\u00AD\u00B2-\u00B7\u00B9-\u00D6\u00D8-\u00F6\u00F8-\u03F5\u03F7-\u0481\u0483-\u058C\u0591-\u0605\u0610-\u06DD\u0900-\u09F1\u0E01-\u0E3E\u0E40-\u0E5B\u1E00-\u1FFF\u2010-\u203B\u3001-\u3003\u3005-\u3011\u3041-\u318F\u31A0-\u31BF\u3400-\u4DBF\u4E00-\uA48F\uAC00-\uD7A3\uFF01-\uFF03\uFF05-\uFF0A\uFF0C-\uFF1B\uFF1F-\uFF5B]'
    OR content !~ '[0-9A-Za-z\u00C0-\u1FFF\u3041-\uD7A3]';

INSERT INTO stale_words (relation, id)
SELECT 'notes', id FROM notes WHERE has_symbols(content)
UNION ALL
SELECT 'passages', p.id
FROM passages p JOIN documents d ON d.id = p.document_id
WHERE has_symbols(concat_ws(' ', d.title, p.heading, p.content))
UNION ALL
SELECT 'procedures', id FROM procedures WHERE has_symbols(trigger)
ON CONFLICT DO NOTHING;

DROP FUNCTION has_symbols(text);
