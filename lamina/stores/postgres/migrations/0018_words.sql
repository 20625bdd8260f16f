-- The version of the words that a projection's store holds, and the texts whose words an earlier release indexed
-- otherwise: those with a letter, digit or mark beyond Latin, Greek, Cyrillic, Armenian and common symbols. The service
-- indexes them anew in the background; names are keyed anew by the start that applies this migration.
ALTER TABLE projection_stores ADD COLUMN words_version smallint NOT NULL DEFAULT 1;

CREATE TABLE stale_words (
    relation text NOT NULL,
    id uuid NOT NULL,
    PRIMARY KEY (relation, id)
);

CREATE FUNCTION has_stale_words(content text) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN content ~ '[^\u0001-\u00AC\u00AE-\u012F\u0132-\u02B8\u02BD-\u0306\u0308-\u034E\u0350-\u058F\u2010-\u2027\u2030-\u205E\u2070-\u2BFF\uFE0E\uFE0F\U0001F000-\U0001FAFF]';

INSERT INTO stale_words (relation, id)
SELECT 'entities', id FROM entities WHERE has_stale_words(name) OR has_stale_words(array_to_string(aliases, ' '))
UNION ALL
SELECT 'notes', id FROM notes WHERE has_stale_words(content)
UNION ALL
SELECT 'passages', p.id
FROM passages p JOIN documents d ON d.id = p.document_id
WHERE has_stale_words(concat_ws(' ', d.title, p.heading, p.content))
UNION ALL
SELECT 'procedures', id FROM procedures WHERE has_stale_words(trigger);

DROP FUNCTION has_stale_words(text);
