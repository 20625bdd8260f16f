-- When a namespace was last written.
ALTER TABLE epochs ADD COLUMN written_at timestamptz;
