-- What callers send comes back as it was sent: json keeps the order of keys and the form of numbers, which jsonb does not.
-- Each of these tables is written anew.
ALTER TABLE messages ALTER COLUMN metadata TYPE json;
ALTER TABLE notes ALTER COLUMN metadata TYPE json;
ALTER TABLE note_versions ALTER COLUMN metadata TYPE json;
ALTER TABLE documents ALTER COLUMN metadata TYPE json;
ALTER TABLE procedures ALTER COLUMN metadata TYPE json;
ALTER TABLE profiles ALTER COLUMN document TYPE json;
ALTER TABLE profile_versions ALTER COLUMN document TYPE json;
ALTER TABLE profile_versions ALTER COLUMN patch TYPE json;

-- A document's key as it was sent, where that is not in NFC, as `key` is.
ALTER TABLE documents ADD COLUMN sent_key text;
