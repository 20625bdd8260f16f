-- Memory types stand beside the five categories; a memory profile may leave out the user's profile. The notes of before
-- are checked by a migration of its own, beside reads and writes.
ALTER TABLE notes DROP CONSTRAINT notes_category_check;
ALTER TABLE notes ADD CONSTRAINT notes_category_check CHECK (category IN (
    'decision', 'outcome', 'strategy', 'note', 'interaction', 'fact', 'preference', 'skill', 'insight')) NOT VALID;
ALTER TABLE memory_profiles ADD COLUMN shows_profile boolean NOT NULL DEFAULT true;
