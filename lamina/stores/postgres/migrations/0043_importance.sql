-- Of messages and passages, by rule. Those that are stored already keep what they counted until now.
ALTER TABLE messages ADD COLUMN importance double precision NOT NULL DEFAULT 0.5;
ALTER TABLE passages ADD COLUMN importance double precision NOT NULL DEFAULT 0.5;
