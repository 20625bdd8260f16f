-- A cold note's chunks have no words.
UPDATE note_chunks SET tsv = NULL WHERE note_id = ANY(%(ids)s)
