-- The hash of what was sent, of a message whose text was changed since: the same delivery again is that message.
ALTER TABLE messages ADD COLUMN sent_hash bytea;
