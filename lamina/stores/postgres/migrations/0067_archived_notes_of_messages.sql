-- A correction finds the archived notes that were drawn from its message.
CREATE INDEX archived_notes_drawn ON archived_notes (tenant, drawn_from) WHERE drawn_from IS NOT NULL;
