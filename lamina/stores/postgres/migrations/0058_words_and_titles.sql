-- The words of a warm note from its own text, where the setting postgres.note_words asks for it: the trigger is off at first.
CREATE FUNCTION make_note_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT to_tsvector('lamina', substr(n.content, NEW.text_start + 1, NEW.text_end - NEW.text_start)) INTO NEW.tsv
    FROM notes n WHERE n.id = NEW.note_id;
    RETURN NEW;
END
$$;
CREATE TRIGGER note_words BEFORE INSERT OR UPDATE OF tsv ON note_chunks
FOR EACH ROW WHEN (NEW.tsv IS NOT NULL) EXECUTE FUNCTION make_note_words();
ALTER TABLE note_chunks DISABLE TRIGGER note_words;

-- How what lies in the trash begins, or its title.
ALTER TABLE trash ADD COLUMN title text;
